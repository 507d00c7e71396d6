// Division by the rounding mode: a true quotient computes in floats, rounded ones of integers exactly in integers.
#include <diopi/diopirt.h>

#include "elementwise.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

struct Quotient {
    template <class C>
    static DIOPI_HD C apply(C input, C other) {
        return input / other;
    }
};

struct FlooredQuotient : diopi::math::UsualQuotient {
    template <class C>
    static DIOPI_HD C apply(C input, C other) {
        return diopi::math::floor_div(input, other);
    }
};

struct TruncatedQuotient {
    template <class C>
    static DIOPI_HD C apply(C input, C other) {
        return diopi::math::trunc_div(input, other);
    }
};

// The one elementwise expression of the schema that the output's element type alone cannot place: the mode decides where it computes.
template <class Other>
diopiError_t divide(Context ctx, Tensor out, ConstTensor input, Other other, diopiRoundMode_t mode) {
    switch (mode) {
        case RoundModeNone: return elementwise<Quotient, Float, Compute::floating>(ctx, out, input, other);
        case RoundModeFloor: return elementwise<FlooredQuotient, Number, Compute::promote>(ctx, out, input, other);
        case RoundModeTrunc: return elementwise<TruncatedQuotient, Number, Compute::promote>(ctx, out, input, other);
        default:
            return guarded([&] { fail(diopiErrorOccurred, "there is no rounding mode %d", static_cast<int>(mode)); });
    }
}

}  // namespace

diopiError_t diopiDiv(Context ctx, Tensor out, ConstTensor input, ConstTensor other, diopiRoundMode_t rounding_mode) {
    return divide(ctx, out, input, other, rounding_mode);
}

diopiError_t diopiDivInp(Context ctx, Tensor input, ConstTensor other, diopiRoundMode_t rounding_mode) {
    return divide(ctx, input, input, other, rounding_mode);
}

diopiError_t diopiDivScalar(Context ctx, Tensor out, ConstTensor input, const diopiScalar_t* other,
                            diopiRoundMode_t rounding_mode) {
    return divide(ctx, out, input, other, rounding_mode);
}

diopiError_t diopiDivInpScalar(Context ctx, Tensor input, const diopiScalar_t* other, diopiRoundMode_t rounding_mode) {
    return divide(ctx, input, input, other, rounding_mode);
}

}  // namespace impl::portable

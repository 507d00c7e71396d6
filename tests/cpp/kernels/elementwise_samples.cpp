// Elementwise kernels as the generator prints them, under the contract's names, to test elementwise.h.
#include <diopi/functions.h>

#include "elementwise/elementwise.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

struct AddKernel {
    template <class C>
    static DIOPI_HD C apply(C input, C other, C alpha) {
        return input + alpha * other;
    }
};
diopiError_t diopiAdd(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      diopiConstTensorHandle_t other, const diopiScalar_t* alpha) {
    return elementwise<AddKernel, Any, Compute::promote>(ctx, out, input, other, alpha);
}
diopiError_t diopiAddInp(diopiContextHandle_t ctx, diopiTensorHandle_t input, diopiConstTensorHandle_t other,
                         const diopiScalar_t* alpha) {
    return elementwise<AddKernel, Any, Compute::promote>(ctx, input, input, other, alpha);
}
diopiError_t diopiAddScalar(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                            const diopiScalar_t* other, const diopiScalar_t* alpha) {
    return elementwise<AddKernel, Any, Compute::promote>(ctx, out, input, other, alpha);
}

struct LtKernel {
    template <class C>
    static DIOPI_HD bool apply(C input, C other) {
        return input < other;
    }
};
diopiError_t diopiLt(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                     diopiConstTensorHandle_t other) {
    return elementwise<LtKernel, Any, Compute::promote>(ctx, out, input, other);
}

struct WhereKernel {
    template <class C>
    static DIOPI_HD C apply(C condition, C input, C other) {
        return math::where(condition, input, other);
    }
};
diopiError_t diopiWhere(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t condition,
                        diopiConstTensorHandle_t input, diopiConstTensorHandle_t other) {
    return elementwise<WhereKernel, Any, Compute::promote>(ctx, out, condition, input, other);
}

struct PowKernel {
    template <class C>
    static DIOPI_HD C apply(C input, C exponent) {
        return math::pow(input, exponent);
    }
};
diopiError_t diopiPowTensor(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                            diopiConstTensorHandle_t exponent) {
    return elementwise<PowKernel, Number, Compute::promote>(ctx, out, input, exponent);
}

struct SinKernel : math::UsualAngle {
    template <class C>
    static DIOPI_HD C apply(C input) {
        return math::sin(input);
    }
};
diopiError_t diopiSin(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    return elementwise<SinKernel, Float, Compute::floating>(ctx, out, input);
}

struct RemainderKernel : math::UsualQuotient {
    template <class C>
    static DIOPI_HD C apply(C input, C other) {
        return math::remainder(input, other);
    }
};
diopiError_t diopiRemainderTensor(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                  diopiConstTensorHandle_t other) {
    return elementwise<RemainderKernel, Number, Compute::promote>(ctx, out, input, other);
}

// 0: true division, 1: towards zero, 2: down
struct DivKernel {
    template <class C>
    static DIOPI_HD C apply(C input, C other, C mode) {
        return math::where(mode == C(1), math::trunc_div(input, other), math::floor_div(input, other));
    }
};
diopiError_t diopiDiv(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      diopiConstTensorHandle_t other, diopiRoundMode_t rounding_mode) {
    return elementwise<DivKernel, Number, Compute::promote>(ctx, out, input, other,
                                                            static_cast<int64_t>(rounding_mode));
}

struct ErfinvKernel {
    template <class C>
    static DIOPI_HD C apply(C input) {
        return math::erfinv(input);
    }
};
diopiError_t diopiErfinv(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    return elementwise<ErfinvKernel, Float, Compute::floating>(ctx, out, input);
}

struct SigmoidKernel {
    template <class C>
    static DIOPI_HD C apply(C input) {
        return math::sigmoid(input);
    }
};
diopiError_t diopiSigmoid(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    return elementwise<SigmoidKernel, Float, Compute::floating>(ctx, out, input);
}

struct MaximumKernel {
    template <class C>
    static DIOPI_HD C apply(C input, C other) {
        return math::max(input, other);
    }
};
diopiError_t diopiMaximum(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                          diopiConstTensorHandle_t other) {
    return elementwise<MaximumKernel, Any, Compute::promote>(ctx, out, input, other);
}

struct BitwiseNotKernel {
    template <class C>
    static DIOPI_HD C apply(C input) {
        return math::bitwise_not(input);
    }
};
diopiError_t diopiBitwiseNot(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    return elementwise<BitwiseNotKernel, Integer, Compute::promote>(ctx, out, input);
}

}  // namespace impl::portable

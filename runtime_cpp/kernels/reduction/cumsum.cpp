// Cumulative sums along a dimension, and their gradient.
#include <diopi/diopirt.h>

#include "core/view.h"
#include "reduce.h"
#include "scan.h"
#include "space/lines.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

template <class T>
struct CumulativeSum {
    using State = typename SumFold<T>::State;
    Lines<2> lines;  // out, input
    TensorView out;
    const T* input;

    DIOPI_HD Offsets<2> start(int64_t line) const { return lines.outer.offsets(line); }
    DIOPI_HD State load(const Offsets<2>& at, int64_t k) const {
        return cast<State>(input[at[1] + k * lines.strides[1]]);
    }
    DIOPI_HD void store(const Offsets<2>& at, int64_t k, State sum) const {
        store_as(out, at[0] + k * lines.strides[0], static_cast<typename SumFold<T>::Result>(sum));
    }
};

// `tensor` with the elements along `dim` from the last to the first.
TensorView reversed(TensorView tensor, int64_t dim) {
    if (tensor.ndim == 0 || tensor.numel == 0) return tensor;
    const int at = normalized_dim(dim, tensor.ndim);
    return narrowed(tensor, at, tensor.sizes[at] - 1, tensor.sizes[at], -1);
}

void cumulative_sum(Context ctx, const TensorView& out, const TensorView& input, int64_t dim) {
    require_storable(out);
    const Lines<2> lines = lines_along({out, input}, dim);
    dispatch<Any>(input.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        const bool beside = team_work(lines, 1) < lines.count;
        scan(ctx, lines.outer.numel, lines.count, CumulativeSum<T>{lines, out, input.as<T>()}, beside);
    });
}

}  // namespace

diopiError_t diopiCumsum(Context ctx, Tensor out, ConstTensor input, int64_t dim) {
    return guarded([&] { cumulative_sum(ctx, required_view(out, "out"), required_view(input, "input"), dim); });
}

diopiError_t diopiCumsumBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, int64_t dim) {
    return guarded([&] {
        cumulative_sum(ctx, reversed(required_view(grad_input, "grad_input"), dim),
                       reversed(required_view(grad_output, "grad_output"), dim), dim);
    });
}

}  // namespace impl::portable

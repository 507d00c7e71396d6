// sort, argsort, topk, and the gradient of a sort.
#include <diopi/diopirt.h>

#include "copy/copy.h"
#include "core/view.h"
#include "sorting.h"
#include "space/runs.h"

namespace diopi::kernels {
namespace {

template <class T>
void put_back(diopiStreamHandle_t stream, const TensorView& grad_input, const TensorView& grad_output,
              const TensorView& indices, int dim) {
    const TensorView lines[] = {without_dim(grad_output, dim), without_dim(indices, dim), without_dim(grad_input, dim)};
    const Space<3> starts = broadcast_space<3>(lines[0], lines);
    const int64_t from_step = grad_output.strides[dim], place_step = indices.strides[dim];
    const int64_t to_step = grad_input.strides[dim];
    T* target = grad_input.as<T>();
    const T* source = grad_output.as<T>();
    const int64_t* places = indices.as<int64_t>();
    for_runs(
        stream, starts.numel, grad_output.sizes[dim], DIOPI_LAMBDA(int64_t line, int64_t begin, int64_t end) {
            const Offsets<3> at = starts.offsets(line);
            for (int64_t j = begin; j < end; ++j)
                target[at[2] + places[at[1] + j * place_step] * to_step] = source[at[0] + j * from_step];
        });
}

}  // namespace
}  // namespace diopi::kernels

namespace impl::portable {

using namespace diopi::kernels;

// The sort is stable always, which is right for every value of pStable.
diopiError_t diopiSort(Context ctx, Tensor values, Tensor indices, ConstTensor input, int64_t dim, bool descending,
                       const bool*) {
    return guarded([&] {
        const TensorView source = required_view(input, "input"), lined = at_least_1d(source);
        sort_along(ctx, required_view(values, "values"), required_view(indices, "indices"), source, dim,
                   lined.sizes[normalized_dim(dim, lined.ndim)], descending);
    });
}

diopiError_t diopiArgsort(Context ctx, Tensor out, ConstTensor input, bool, const int64_t* dim, bool descending) {
    return guarded([&] {
        const TensorView source = required_view(input, "input"), lined = at_least_1d(source);
        const int64_t along = dim == nullptr ? -1 : *dim;
        sort_along(ctx, undefined_view(), required_view(out, "out"), source, along,
                   lined.sizes[normalized_dim(along, lined.ndim)], descending);
    });
}

// The result is sorted always, which is right for every value of `sorted`.
diopiError_t diopiTopk(Context ctx, Tensor values, Tensor indices, ConstTensor input, int64_t k, int64_t dim,
                       bool largest, bool) {
    return guarded([&] {
        sort_along(ctx, required_view(values, "values"), required_view(indices, "indices"),
                   required_view(input, "input"), dim, k, largest);
    });
}

diopiError_t diopiSortBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, int64_t dim,
                               ConstTensor indices, Sizes, bool keepdim) {
    return guarded([&] {
        const TensorView result = at_least_1d(required_view(grad_input, "grad_input"));
        const int at = normalized_dim(dim, result.ndim);
        TensorView grads = required_view(grad_output, "grad_output");
        TensorView places = required_view(indices, "indices");
        if (!keepdim && grads.ndim < result.ndim) grads = with_dim(grads, at, 1, 0);
        if (!keepdim && places.ndim < result.ndim) places = with_dim(places, at, 1, 0);
        grads = at_least_1d(converted(ctx, grads, result.dtype));
        places = at_least_1d(converted(ctx, places, diopi_dtype_int64));
        require_same_sizes(grads, places, "grad_output", "indices");
        fill_zero(ctx, result);
        if (grads.numel == 0) return;
        dispatch<Float>(result.dtype, [&](auto type) {
            put_back<typename decltype(type)::type>(stream_of(ctx), result, grads, places, at);
        });
    });
}

}  // namespace impl::portable

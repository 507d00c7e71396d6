// Convolutions and pooling over the voxels that hold anything, along lists of pairs: for each element of the kernel,
// which rows of the features reach which rows of the output. Rows that meet are added up in the order of the pairs.
#include <diopi/diopirt.h>

#include <vector>

#include "copy/sums.h"
#include "core/host_list.h"
#include "core/view.h"
#include "linear_algebra/matrix.h"
#include "math/math.h"
#include "space/element.h"
#include "space/runs.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

struct Pairing {
    int64_t element;  // of the kernel
    TensorView sources, targets;
    bool whole;  // every row reaches itself, whatever the pairs say
};

// The pairings of all elements of the kernel that have any; waits for their numbers. `middle` makes the one with most
// pairs a whole one, `inverse` reads the pairs the other way round.
std::vector<Pairing> pairings_of(Context ctx, ConstTensor pairs, ConstTensor numbers, bool inverse, bool middle,
                                 int64_t rows_in, int64_t rows_out) {
    const TensorView lists = converted(ctx, required_view(pairs, "indicePairs"), diopi_dtype_int32);
    require(lists.ndim == 3 && lists.sizes[1] == 2, "'indicePairs' has the shape [kernel elements, 2, pairs]");
    require(!middle || rows_in == rows_out, "a submanifold convolution has as many rows in its output as in its input");
    const int64_t elements = lists.sizes[0];
    const std::vector<int64_t> counts = read_back(ctx, sized_view(numbers, "indiceNum", {elements}));
    int64_t most = 0;
    for (int64_t k = 1; k < elements; ++k) most = counts[k] > counts[most] ? k : most;
    std::vector<Pairing> pairings;
    for (int64_t k = 0; k < elements; ++k) {
        require(counts[k] >= 0 && counts[k] <= lists.sizes[2], "'indicePairs' has no room for %lld pairs", counts[k]);
        const bool whole = middle && k == most;
        if (counts[k] == 0 && !whole) continue;
        const TensorView both = narrowed(selected(lists, 0, k), 1, 0, counts[k]);
        pairings.push_back({k, selected(both, 0, inverse ? 1 : 0), selected(both, 0, inverse ? 0 : 1), whole});
    }
    return pairings;
}

TensorView matrix_view(ConstTensor handle, const char* name) {
    const TensorView tensor = required_view(handle, name);
    require(tensor.ndim == 2, "'%s' has the shape [rows, channels]", name);
    if (!is_float_dtype(tensor.dtype)) fail_dtype(tensor.dtype);
    return tensor;
}

// The rows of `tensor` that a list names, or all of them.
TensorView rows_at(Context ctx, const TensorView& tensor, const TensorView& list, bool whole) {
    if (whole) return tensor;
    const int64_t sizes[] = {list.numel, tensor.sizes[1]};
    const TensorView rows = temporary(ctx, sizes, 2, tensor.dtype);
    take(stream_of(ctx), rows, 0, slices_at(ctx, tensor, 0, list, false));
    return rows;
}

// Adds the rows of a matrix product to the rows of `sums` that a list names, or to all of them.
void add_product(Context ctx, const TensorView& sums, const TensorView& list, bool whole, const TensorView& a,
                 const TensorView& b) {
    if (whole) return multiply(ctx, sums, a, b, 1, 1);
    const int64_t sizes[] = {list.numel, sums.sizes[1]};
    const TensorView product = temporary(ctx, sizes, 2, sums.dtype);
    multiply(ctx, product, a, b, 1, 0);
    accumulate(ctx, slices_at(ctx, sums, 0, list, false), product, 0);
}

// [..., in, out] without gaps as [kernel elements, in, out].
TensorView matrices_of(const TensorView& filters, int64_t elements) {
    require(filters.ndim >= 2, "'filters' has the shape [..., in, out]");
    const int64_t sizes[] = {elements, filters.sizes[filters.ndim - 2], filters.sizes[filters.ndim - 1]};
    require(elements * sizes[1] * sizes[2] == filters.numel,
            "'filters' does not have a matrix for each of %lld elements", elements);
    return dense_view(filters.data, filters.dtype, sizes, 3);
}

void convolve(Context ctx, Tensor* out, ConstTensor features, ConstTensor filters, const TensorView& bias,
              ConstTensor pairs, ConstTensor numbers, int64_t rows, bool inverse, bool middle) {
    const TensorView input = matrix_view(features, "features");
    const diopiDtype_t dtype = product_dtype(input.dtype);
    const TensorView x = converted(ctx, input, dtype);
    const TensorView weights = matrices_of(contiguous_as(ctx, required_view(filters, "filters"), dtype),
                                           required_view(pairs, "indicePairs").sizes[0]);
    const std::vector<Pairing> pairings = pairings_of(ctx, pairs, numbers, inverse, middle, x.sizes[0], rows);
    const int64_t sizes[] = {rows, weights.sizes[2]};
    summed_up(ctx, allocated(ctx, out, sizes, 2, input.dtype), [&](const TensorView& sums) {
        if (bias.defined()) {
            copy_elements(ctx, sums, bias);
        } else {
            fill_zero(ctx, sums);
        }
        for (const Pairing& pairing : pairings)
            add_product(ctx, sums, pairing.targets, pairing.whole, rows_at(ctx, x, pairing.sources, pairing.whole),
                        selected(weights, 0, pairing.element));
    });
}

// Calls body(source row, target row, channel) for each pair; a channel walks the pairs in order.
template <class Body>
struct PairWalk {
    TensorView sources, targets;
    Body body;

    DIOPI_HD void operator()(int64_t, int64_t begin, int64_t end) const {
        for (int64_t p = 0; p < sources.sizes[0]; ++p) {
            const int32_t source = element<int32_t>(sources, p), target = element<int32_t>(targets, p);
            for (int64_t c = begin; c < end; ++c) body(source, target, c);
        }
    }
};

template <class Body>
void walk_pairs(Context ctx, const std::vector<Pairing>& pairings, int64_t channels, const Body& body) {
    for (const Pairing& pairing : pairings)
        for_runs(stream_of(ctx), 1, channels, PairWalk<Body>{pairing.sources, pairing.targets, body});
}

template <class T>
struct KeepGreater {
    TensorView out, features;

    DIOPI_HD void operator()(int64_t source, int64_t target, int64_t c) const {
        using C = ComputeType<T>;
        T& kept = element<T>(out, target, c);
        kept = cast<T>(math::max(cast<C>(kept), cast<C>(element<T>(features, source, c))));
    }
};

template <class T>
struct HandBack {
    TensorView sums, features, out_features, out_grad;

    DIOPI_HD void operator()(int64_t source, int64_t target, int64_t c) const {
        using C = ComputeType<T>;
        if (cast<C>(element<T>(features, source, c)) == cast<C>(element<T>(out_features, target, c)))
            element<AccumulateType<T>>(sums, source, c) += cast<AccumulateType<T>>(element<T>(out_grad, target, c));
    }
};

}  // namespace

diopiError_t diopiIndiceConvMmcv(Context ctx, Tensor* out, ConstTensor features, ConstTensor filters,
                                 ConstTensor indicePairs, ConstTensor indiceNum, int64_t numActOut, int64_t _inverse,
                                 int64_t _subM) {
    return guarded([&] {
        convolve(ctx, out, features, filters, undefined_view(), indicePairs, indiceNum, numActOut, _inverse != 0,
                 _subM != 0);
    });
}

diopiError_t diopiFusedIndiceConvBatchnormMmcv(Context ctx, Tensor* out, ConstTensor features, ConstTensor filters,
                                               ConstTensor bias, ConstTensor indicePairs, ConstTensor indiceNum,
                                               int64_t numActOut, int64_t _inverse, int64_t _subM) {
    return guarded([&] {
        convolve(ctx, out, features, filters, required_view(bias, "bias"), indicePairs, indiceNum, numActOut,
                 _inverse != 0, _subM != 0);
    });
}

diopiError_t diopiIndiceConvBackwardMmcv(Context ctx, Tensor* outlist, ConstTensor features, ConstTensor filters,
                                         ConstTensor outGrad, ConstTensor indicePairs, ConstTensor indiceNum,
                                         int64_t _inverse, int64_t _subM) {
    return guarded([&] {
        const TensorView input = matrix_view(features, "features"), grads = matrix_view(outGrad, "outGrad");
        const TensorView kernel = required_view(filters, "filters");
        const diopiDtype_t dtype = product_dtype(input.dtype);
        const TensorView x = converted(ctx, input, dtype), dy = converted(ctx, grads, dtype);
        const int64_t elements = required_view(indicePairs, "indicePairs").sizes[0];
        const TensorView weights = matrices_of(contiguous_as(ctx, kernel, dtype), elements);
        const std::vector<Pairing> pairings =
            pairings_of(ctx, indicePairs, indiceNum, _inverse != 0, _subM != 0, x.sizes[0], dy.sizes[0]);
        const TensorView grad_features = allocated(ctx, outlist, input.sizes, 2, input.dtype);
        const TensorView grad_filters = allocated(ctx, outlist + 1, kernel.sizes, kernel.ndim, kernel.dtype);
        summed_up(ctx, grad_features, [&](const TensorView& dx) {
            fill_zero(ctx, dx);
            summed_up(ctx, grad_filters, [&](const TensorView& dw) {
                fill_zero(ctx, dw);
                for (const Pairing& pairing : pairings) {
                    const TensorView gradient = rows_at(ctx, dy, pairing.targets, pairing.whole);
                    const TensorView read = rows_at(ctx, x, pairing.sources, pairing.whole);
                    multiply(ctx, selected(matrices_of(dw, elements), 0, pairing.element), matrix_transposed(read),
                             gradient, 1, 0);
                    add_product(ctx, dx, pairing.sources, pairing.whole, gradient,
                                matrix_transposed(selected(weights, 0, pairing.element)));
                }
            });
        });
    });
}

diopiError_t diopiIndiceMaxpoolMmcv(Context ctx, Tensor* out, ConstTensor features, ConstTensor indicePairs,
                                    ConstTensor indiceNum, int64_t numAct) {
    return guarded([&] {
        const TensorView input = matrix_view(features, "features");
        const int64_t sizes[] = {numAct, input.sizes[1]};
        const TensorView result = allocated(ctx, out, sizes, 2, input.dtype);
        fill_zero(ctx, result);
        const std::vector<Pairing> pairings =
            pairings_of(ctx, indicePairs, indiceNum, false, false, input.sizes[0], numAct);
        dispatch<Float>(input.dtype, [&](auto type) {
            walk_pairs(ctx, pairings, sizes[1], KeepGreater<typename decltype(type)::type>{result, input});
        });
    });
}

diopiError_t diopiIndiceMaxpoolBackwardMmcv(Context ctx, Tensor* out, ConstTensor features, ConstTensor outFeatures,
                                            ConstTensor outGrad, ConstTensor indicePairs, ConstTensor indiceNum) {
    return guarded([&] {
        const TensorView input = matrix_view(features, "features");
        const TensorView pooled = matrix_view(outFeatures, "outFeatures"), grads = matrix_view(outGrad, "outGrad");
        require(pooled.same_sizes(grads) && pooled.sizes[1] == input.sizes[1],
                "'outFeatures' and 'outGrad' do not have the shape of the pooled features");
        require_dtype(pooled, input.dtype);
        require_dtype(grads, input.dtype);
        const std::vector<Pairing> pairings =
            pairings_of(ctx, indicePairs, indiceNum, false, false, input.sizes[0], pooled.sizes[0]);
        summed_up(ctx, allocated(ctx, out, input.sizes, 2, input.dtype), [&](const TensorView& sums) {
            fill_zero(ctx, sums);
            dispatch<Float>(input.dtype, [&](auto type) {
                walk_pairs(ctx, pairings, input.sizes[1],
                           HandBack<typename decltype(type)::type>{sums, input, pooled, grads});
            });
        });
    });
}

}  // namespace impl::portable

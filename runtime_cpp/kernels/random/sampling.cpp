// Random choices: permutations, and classes drawn by weight with or without replacement.
#include <diopi/diopirt.h>

#include "copy/copy.h"
#include "core/view.h"
#include "math/math.h"
#include "math/philox.h"
#include "reduction/scan.h"
#include "sorting/sorting.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

struct DrawBitsTask {
    ReplayedStream stream;
    int64_t* bits;
    DIOPI_HD void operator()(int64_t i) const { bits[i] = static_cast<int64_t>(stream.draw(i).first); }
};

// The order of as many random numbers: each permutation is equally likely, and the same on every chip.
void permute(Context ctx, const TensorView& out, const ReplayedStream& stream) {
    const TensorView bits = temporary_like(ctx, out, diopi_dtype_int64);
    for_each(ctx, out.numel, DrawBitsTask{stream, bits.as<int64_t>()});
    const TensorView order = temporary_like(ctx, out, diopi_dtype_int64);
    sort_along(ctx, undefined_view(), order, bits, 0, out.numel, false);
    copy_elements(ctx, out, order);
}

// The running sums of each row of weights.
struct WeightSums {
    using State = double;
    TensorView weights;
    double* sums;

    DIOPI_HD int64_t start(int64_t row) const { return row; }
    DIOPI_HD double load(int64_t row, int64_t c) const {
        return load_as<double>(weights, row * weights.strides[0] + c * weights.strides[1]);
    }
    DIOPI_HD void store(int64_t row, int64_t c, double sum) const { sums[row * weights.sizes[1] + c] = sum; }
};

// The first class whose running sum exceeds a mark.
struct ChooseTask {
    TensorView out;
    const double* sums;
    int64_t classes;
    ReplayedStream stream;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t row = i / out.sizes[1], sample = i - row * out.sizes[1];
        const double* const own = sums + row * classes;
        const double mark = stream.uniform(i) * own[classes - 1];
        const int64_t drawn = partition_point(0, classes - 1, [&](int64_t c) { return own[c] <= mark; });
        store_as(out, row * out.strides[0] + sample * out.strides[1], drawn);
    }
};

// When a class comes, at a rate that is its weight: classes come in the order of draws without replacement (Efraimidis
// and Spirakis, "Weighted random sampling with a reservoir", 2006).
struct ArrivalTask {
    WeightSums weights;
    ReplayedStream stream;
    double* arrivals;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t row = i / weights.weights.sizes[1], c = i - row * weights.weights.sizes[1];
        arrivals[i] = -math::log(1.0 - stream.uniform(i)) / weights.load(row, c);
    }
};

}  // namespace

diopiError_t diopiRandperm(Context ctx, Tensor out, int64_t n, Generator generator) {
    return guarded([&] {
        const TensorView y = required_view(out, "out");
        require(y.ndim == 1 && y.numel == n, "a permutation of %lld numbers needs an output of that length", n);
        require_storable(y);
        if (n == 0) return;
        permute(ctx, y, next_stream(ctx, generator));
    });
}

diopiError_t diopiMultinomial(Context ctx, Tensor out, ConstTensor input, int64_t num_samples, bool replacement,
                              Generator generator) {
    return guarded([&] {
        const TensorView x = required_view(input, "input"), y = required_view(out, "out");
        require(x.ndim == 1 || x.ndim == 2, "multinomial takes one or two dimensions, not %d", x.ndim);
        require(y.ndim == x.ndim && y.sizes[y.ndim - 1] == num_samples,
                "the output of multinomial does not hold %lld samples per row", num_samples);
        if (!is_float_dtype(x.dtype)) fail_dtype(x.dtype);
        require_storable(y);
        const int64_t classes = x.sizes[x.ndim - 1];
        require(replacement || num_samples <= classes, "%lld classes do not give %lld different samples", classes,
                num_samples);
        const TensorView weights = x.ndim == 1 ? with_dim(x, 0, 1, 0) : x;
        const TensorView samples = y.ndim == 1 ? with_dim(y, 0, 1, 0) : y;
        if (samples.numel == 0) return;
        require(classes > 0, "there are no classes to draw from");
        const TensorView numbers = temporary_like(ctx, weights, diopi_dtype_float64);
        const WeightSums sums{weights, numbers.as<double>()};
        const ReplayedStream stream = next_stream(ctx, generator);
        if (replacement) {
            scan(ctx, weights.sizes[0], classes, sums);
            for_each(ctx, samples.numel, ChooseTask{samples, sums.sums, classes, stream});
        } else {
            for_each(ctx, weights.numel, ArrivalTask{sums, stream, sums.sums});
            sort_along(ctx, undefined_view(), samples, numbers, 1, num_samples, false);
        }
    });
}

}  // namespace impl::portable

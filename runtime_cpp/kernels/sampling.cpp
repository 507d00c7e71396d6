// Random choices: permutations, and classes drawn by weight with or without replacement.
#include <diopi/diopirt.h>

#include "core/choose.h"
#include "core/philox.h"
#include "core/tensor.h"
#include "core/workspace.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// Fisher and Yates' shuffle: each order is equally likely.
struct PermutationTask {
    TensorView out;
    int64_t count;
    RandomStream stream;

    DIOPI_HD void operator()() const {
        const int64_t stride = out.strides[0];
        for (int64_t i = 0; i < count; ++i) store_as(out, i * stride, i);
        for (int64_t i = count - 1; i > 0; --i) {
            const auto other = static_cast<int64_t>(stream.draw(i).first % static_cast<uint64_t>(i + 1));
            const auto kept = load_as<int64_t>(out, i * stride);
            store_as(out, i * stride, load_as<int64_t>(out, other * stride));
            store_as(out, other * stride, kept);
        }
    }
};

// One row of weights: each draw walks the running sum; without replacement the class drawn then weighs nothing.
struct MultinomialTask {
    TensorView out;
    TensorView input;
    double* weights;  // a copy of the input, one row after the other
    int64_t classes;
    int64_t samples;
    bool replacement;
    RandomStream stream;

    DIOPI_HD void operator()(int64_t row) const {
        double* left = weights + row * classes;
        double total = 0;
        for (int64_t c = 0; c < classes; ++c) {
            left[c] = load_as<double>(input, at(input, row, c));
            total += left[c];
        }
        for (int64_t sample = 0; sample < samples; ++sample) {
            const double mark = stream.uniform(row * samples + sample) * total;
            const int64_t drawn = choose(classes, mark, [&](int64_t c) { return left[c]; });
            store_as(out, at(out, row, sample), drawn);
            if (replacement) continue;
            left[drawn] = 0;
            total = 0;  // summed again: subtracting would gather rounding errors
            for (int64_t c = 0; c < classes; ++c) total += left[c];
        }
    }

    DIOPI_HD static int64_t at(const TensorView& tensor, int64_t row, int64_t column) {
        return tensor.ndim == 1 ? column * tensor.strides[0] : row * tensor.strides[0] + column * tensor.strides[1];
    }
};

}  // namespace

diopiError_t diopiRandperm(Context ctx, Tensor out, int64_t n, Generator generator) {
    return guarded([&] {
        const TensorView y = required_view(out, "out");
        require(y.ndim == 1 && y.numel == n, "a permutation of %lld numbers needs an output of that length", n);
        require_storable(y);
        if (n == 0) return;
        run_once(ctx, PermutationTask{y, n, next_stream(generator)});
    });
}

diopiError_t diopiMultinomial(Context ctx, Tensor out, ConstTensor input, int64_t num_samples, bool replacement,
                              Generator generator) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        const TensorView y = required_view(out, "out");
        require(x.ndim == 1 || x.ndim == 2, "multinomial takes one or two dimensions, not %d", x.ndim);
        require(y.ndim == x.ndim && y.sizes[y.ndim - 1] == num_samples,
                "the output of multinomial does not hold %lld samples per row", num_samples);
        if (!is_float_dtype(x.dtype)) fail_dtype(x.dtype);
        require_storable(y);
        const int64_t classes = x.sizes[x.ndim - 1];
        require(replacement || num_samples <= classes, "%lld classes do not give %lld different samples", classes,
                num_samples);
        const int64_t rows = x.ndim == 1 ? 1 : x.sizes[0];
        double* weights = workspace_of<double>(ctx, rows * classes);
        for_each(ctx, rows, MultinomialTask{y, x, weights, classes, num_samples, replacement, next_stream(generator)});
    });
}

}  // namespace impl::portable

// Attention to few places in feature maps of several sizes, each sampled between its pixels, and its gradients.
#include <diopi/diopirt.h>

#include "convolution_geometry.h"
#include "copy/common_dtype.h"
#include "space/bilinear.h"
#include "space/runs.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// All tensors are dense: values [batch, keys, heads, channels], weights [batch, queries, heads, levels, points], and
// locations with x and y for each weight. A row is one head of one query, a sample one point of one level.
template <class T>
struct Samples {
    int64_t batch, keys, heads, channels, queries, levels, points;
    const T *values, *locations, *weights;
    TensorView sizes, starts;  // [levels, 2] and [levels]

    DIOPI_HD int64_t rows() const { return batch * queries * heads; }
    DIOPI_HD int64_t per_row() const { return levels * points; }
    DIOPI_HD int64_t row(int64_t image, int64_t query, int64_t head) const {
        return (image * queries + query) * heads + head;
    }
    DIOPI_HD double height(int64_t level) const { return load_as<double>(sizes, level * sizes.strides[0]); }
    DIOPI_HD double width(int64_t level) const {
        return load_as<double>(sizes, level * sizes.strides[0] + sizes.strides[1]);
    }

    // Calls f(offset, PixelShare) for the pixels that a sample reads, with the offset of their values. What the sizes
    // of the maps lead to behind the last key is left out.
    template <class F>
    DIOPI_HD void for_each_value(int64_t row, int64_t sample, F&& f) const {
        const int64_t level = sample / points, head = row % heads, image = row / (queries * heads);
        const double down = height(level), across = width(level);
        const auto start = load_as<int64_t>(starts, level * starts.strides[0]);
        const T* place = locations + 2 * (row * per_row() + sample);
        const ImagePoint point{place[1] * down - 0.5, place[0] * across - 0.5};
        const auto columns = static_cast<int64_t>(across);
        for_each_pixel_around(point, static_cast<int64_t>(down), columns,
                              [&](int64_t y, int64_t x, const PixelShare& share) {
                                  const int64_t key = start + y * columns + x;
                                  if (key >= 0 && key < keys)
                                      f(((image * keys + key) * heads + head) * channels, share);
                              });
    }
};

template <class T>
void attend(diopiStreamHandle_t stream, const Samples<T>& samples, T* out) {
    for_runs(
        stream, samples.rows(), samples.channels, DIOPI_LAMBDA(int64_t row, int64_t begin, int64_t end) {
            T* target = out + row * samples.channels;
            for (int64_t c = begin; c < end; ++c) target[c] = T(0);
            for (int64_t s = 0; s < samples.per_row(); ++s) {
                const T weight = samples.weights[row * samples.per_row() + s];
                samples.for_each_value(row, s, [&](int64_t at, const PixelShare& share) {
                    const T factor = static_cast<T>(share.value) * weight;
                    for (int64_t c = begin; c < end; ++c) target[c] += factor * samples.values[at + c];
                });
            }
        });
}

// The channels of one head of one image walk its queries in order: any of them may add to any value.
template <class T>
void spread(diopiStreamHandle_t stream, const Samples<T>& samples, const T* grads, T* grad_values) {
    const int64_t lines = samples.batch * samples.heads;
    for_runs(
        stream, lines, samples.channels, DIOPI_LAMBDA(int64_t line, int64_t begin, int64_t end) {
            const int64_t image = line / samples.heads, head = line - image * samples.heads;
            for (int64_t key = 0; key < samples.keys; ++key) {
                T* target = grad_values + ((image * samples.keys + key) * samples.heads + head) * samples.channels;
                for (int64_t c = begin; c < end; ++c) target[c] = T(0);
            }
            for (int64_t query = 0; query < samples.queries; ++query) {
                const int64_t row = samples.row(image, query, head);
                for (int64_t s = 0; s < samples.per_row(); ++s) {
                    const T weight = samples.weights[row * samples.per_row() + s];
                    samples.for_each_value(row, s, [&](int64_t at, const PixelShare& share) {
                        const T factor = static_cast<T>(share.value) * weight;
                        for (int64_t c = begin; c < end; ++c)
                            grad_values[at + c] += factor * grads[row * samples.channels + c];
                    });
                }
            }
        });
}

template <class T>
void derive(diopiStreamHandle_t stream, const Samples<T>& samples, const T* grads, T* grad_locations, T* grad_weights) {
    for_each_index(
        stream, samples.rows() * samples.per_row(), DIOPI_LAMBDA(int64_t i) {
            const int64_t row = i / samples.per_row(), s = i - row * samples.per_row(), level = s / samples.points;
            PixelShare sums{0, 0, 0};
            samples.for_each_value(row, s, [&](int64_t at, const PixelShare& share) {
                double product = 0;
                for (int64_t c = 0; c < samples.channels; ++c)
                    product += static_cast<double>(grads[row * samples.channels + c]) * samples.values[at + c];
                sums.value += share.value * product;
                sums.along_y += share.along_y * product;
                sums.along_x += share.along_x * product;
            });
            grad_weights[i] = static_cast<T>(sums.value);
            grad_locations[2 * i] = static_cast<T>(sums.along_x * samples.width(level) * samples.weights[i]);
            grad_locations[2 * i + 1] = static_cast<T>(sums.along_y * samples.height(level) * samples.weights[i]);
        });
}

struct Operands {
    TensorView value, sizes, starts, locations, weights;
};

Operands operands_of(ConstTensor value, ConstTensor sizes, ConstTensor starts, ConstTensor locations,
                     ConstTensor weights) {
    const Operands o{required_view(value, "value"), required_view(sizes, "spatial_shapes"),
                     required_view(starts, "level_start_index"), required_view(locations, "sampling_loc"),
                     required_view(weights, "attn_weight")};
    require(
        o.value.ndim == 4 && o.locations.ndim == 6 && o.weights.ndim == 5 && o.locations.sizes[5] == 2,
        "'value', 'sampling_loc' and 'attn_weight' have %d, %d and %d dimensions, expected 4, 6 with x and y, and 5",
        o.value.ndim, o.locations.ndim, o.weights.ndim);
    for (int d = 0; d < 5; ++d)
        require(o.locations.sizes[d] == o.weights.sizes[d], "'sampling_loc' and 'attn_weight' differ in shape");
    require(o.value.sizes[0] == o.weights.sizes[0] && o.value.sizes[2] == o.weights.sizes[2],
            "'value' and 'attn_weight' differ in batches or heads");
    const int64_t levels = o.weights.sizes[3];
    require(o.sizes.ndim == 2 && o.sizes.sizes[0] == levels && o.sizes.sizes[1] == 2 && o.starts.ndim == 1 &&
                o.starts.sizes[0] == levels,
            "'spatial_shapes' and 'level_start_index' are not of %lld levels", levels);
    return o;
}

template <class T>
Samples<T> samples_of(Context ctx, const Operands& o) {
    const auto dense = [&](const TensorView& tensor) {
        return contiguous_as(ctx, tensor, dtype_of<T>).template as<T>();
    };
    const int64_t *value = o.value.sizes, *weight = o.weights.sizes;
    return {value[0],  value[1],       value[2],           value[3],         weight[1], weight[3],
            weight[4], dense(o.value), dense(o.locations), dense(o.weights), o.sizes,   o.starts};
}

// A contiguous tensor of type T that becomes `result`; the result itself where it is one.
template <class T, class F>
void compute_contiguous(Context ctx, const TensorView& result, F&& f) {
    with_dtype<1>(ctx, {result}, 1, dtype_of<T>, Layout::contiguous,
                  [&](const auto& target) { f(target[0].template as<T>()); });
}

}  // namespace

// All batches are done at once, whatever `im2col_step` says.

diopiError_t diopiMsDeformAttnMmcv(Context ctx, Tensor* out, ConstTensor value, ConstTensor spatial_shapes,
                                   ConstTensor level_start_index, ConstTensor sampling_loc, ConstTensor attn_weight,
                                   int64_t) {
    return guarded([&] {
        const Operands operands = operands_of(value, spatial_shapes, level_start_index, sampling_loc, attn_weight);
        const int64_t* sizes = operands.value.sizes;
        const int64_t shape[] = {sizes[0], operands.weights.sizes[1], sizes[2] * sizes[3]};
        const TensorView result = allocated(ctx, out, shape, 3, operands.value.dtype);
        dispatch_product(result.dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            compute_contiguous<T>(ctx, result,
                                  [&](T* target) { attend(stream_of(ctx), samples_of<T>(ctx, operands), target); });
        });
    });
}

diopiError_t diopiMsDeformAttnBackwardMmcv(Context ctx, Tensor grad_value, Tensor grad_sampling_loc,
                                           Tensor grad_attn_weight, ConstTensor value, ConstTensor spatial_shapes,
                                           ConstTensor level_start_index, ConstTensor sampling_loc,
                                           ConstTensor attn_weight, ConstTensor grad_output, int64_t) {
    return guarded([&] {
        const Operands operands = operands_of(value, spatial_shapes, level_start_index, sampling_loc, attn_weight);
        const TensorView incoming = required_view(grad_output, "grad_output");
        const TensorView to_value = required_view(grad_value, "grad_value");
        const TensorView to_locations = required_view(grad_sampling_loc, "grad_sampling_loc");
        const TensorView to_weights = required_view(grad_attn_weight, "grad_attn_weight");
        require_same_sizes(to_value, operands.value, "grad_value", "value");
        require_same_sizes(to_locations, operands.locations, "grad_sampling_loc", "sampling_loc");
        require_same_sizes(to_weights, operands.weights, "grad_attn_weight", "attn_weight");
        const int64_t *sizes = operands.value.sizes, queries = operands.weights.sizes[1];
        require(incoming.numel == sizes[0] * queries * sizes[2] * sizes[3],
                "'grad_output' has %lld elements, which is not what the attention gives", incoming.numel);
        dispatch_product(to_value.dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            const Samples<T> samples = samples_of<T>(ctx, operands);
            const T* grads = contiguous_as(ctx, incoming, dtype_of<T>).template as<T>();
            compute_contiguous<T>(ctx, to_value, [&](T* target) { spread(stream_of(ctx), samples, grads, target); });
            compute_contiguous<T>(ctx, to_locations, [&](T* locations) {
                compute_contiguous<T>(ctx, to_weights,
                                      [&](T* weights) { derive(stream_of(ctx), samples, grads, locations, weights); });
            });
        });
    });
}

}  // namespace impl::portable

// Tensors made or changed by position: tril, triu, arange, linspace, pad and unfold.
#include <diopi/diopirt.h>

#include <cmath>
#include <cstring>

#include "copy/copy.h"
#include "core/scalar.h"
#include "core/unit.h"
#include "core/view.h"
#include "space/index.h"
#include "space/runs.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// Keeps what lies on one side of a diagonal: column - row <= diagonal for the lower triangle, >= for the upper.
template <class U>
void keep_triangle(diopiStreamHandle_t stream, const TensorView& out, const TensorView& input, int64_t diagonal,
                   bool lower) {
    using Value = typename Unit<U>::type;
    const TensorView views[] = {without_dim(out, out.ndim - 1), without_dim(input, input.ndim - 1)};
    const Space<2> lines = broadcast_space<2>(views[0], views);
    const int64_t rows = out.sizes[out.ndim - 2], columns = out.sizes[out.ndim - 1];
    const int64_t to_step = out.strides[out.ndim - 1], from_step = input.strides[input.ndim - 1];
    Value* target = static_cast<Value*>(out.data);
    const Value* source = static_cast<const Value*>(input.data);
    for_runs(
        stream, lines.numel, columns, DIOPI_LAMBDA(int64_t line, int64_t begin, int64_t end) {
            const Offsets<2> at = lines.offsets(line);
            const int64_t on_diagonal = line % rows + diagonal;
            for (int64_t j = begin; j < end; ++j) {
                const bool kept = lower ? j <= on_diagonal : j >= on_diagonal;
                target[at[0] + j * to_step] = kept ? source[at[1] + j * from_step] : Value(0);
            }
        });
}

void triangle(Context ctx, const TensorView& out, const TensorView& input, int64_t diagonal, bool lower) {
    require(out.ndim >= 2, "a triangle needs a matrix, got %d dimensions", out.ndim);
    require_same_sizes(out, input, "out", "input");
    if (out.numel == 0) return;
    const TensorView source = converted(ctx, input, out.dtype);
    dispatch_unit(out.dtype, [&](auto unit) {
        keep_triangle<typename decltype(unit)::plain>(stream_of(ctx), out, source, diagonal, lower);
    });
}

// start + i * step in double, or in int64 where all three are integers and stay exact.
template <class V>
void count_up(diopiStreamHandle_t stream, const TensorView& out, V start, V step) {
    const Space<1> space = space_of(out);
    for_each_index(
        stream, out.numel,
        DIOPI_LAMBDA(int64_t i) { store_as(out, space.offset(i), static_cast<V>(start + static_cast<V>(i) * step)); });
}

// From both ends to the middle, so that the last element is exactly `end`.
// Integers count from whole ends.
void interpolate(diopiStreamHandle_t stream, const TensorView& out, double start, double end) {
    const Space<1> space = space_of(out);
    const int64_t count = out.numel;
    const bool whole = !is_float_dtype(out.dtype);
    const double first = whole ? std::trunc(start) : start;
    const double last = whole ? std::trunc(end) : end;
    const double step = count > 1 ? (last - first) / static_cast<double>(count - 1) : 0;
    for_each_index(
        stream, count, DIOPI_LAMBDA(int64_t i) {
            const double value = i < count / 2 || count == 1 ? first + step * static_cast<double>(i)
                                                             : last - step * static_cast<double>(count - 1 - i);
            store_as(out, space.offset(i), value);
        });
}

enum class Border { reflect, replicate, circular };

// The input position that a padded position shows.
DIOPI_HD inline int64_t shown(Border border, int64_t position, int64_t size) {
    if (border == Border::replicate) return position < 0 ? 0 : position >= size ? size - 1 : position;
    if (border == Border::circular)
        return position < 0 ? position + size : position >= size ? position - size : position;
    return position < 0 ? -position : position >= size ? 2 * (size - 1) - position : position;
}

struct Margins {
    int64_t before[kMaxDims];
    int64_t after[kMaxDims];
};

// The list names the last dimension first: before, after, then those of the dimension in front of it.
Margins margins_of(const TensorView& out, const TensorView& input, const Sizes& pad) {
    require(pad.len % 2 == 0 && pad.len <= 2 * input.ndim && out.ndim == input.ndim,
            "pad takes two values for each padded dimension");
    Margins margins{};
    for (int64_t i = 0; i < pad.len / 2; ++i) {
        margins.before[input.ndim - 1 - i] = pad.data[2 * i];
        margins.after[input.ndim - 1 - i] = pad.data[2 * i + 1];
    }
    for (int d = 0; d < input.ndim; ++d) {
        const int64_t expected = input.sizes[d] + margins.before[d] + margins.after[d];
        require(out.sizes[d] == expected, "dimension %d of the padded tensor has the size %lld, expected %lld", d,
                out.sizes[d], expected);
    }
    return margins;
}

void pad_with_value(Context ctx, TensorView out, TensorView input, const Margins& margins, double value) {
    fill_elements(ctx, out, float_scalar(value));
    for (int d = 0; d < input.ndim; ++d) {  // a negative margin cuts off
        const int64_t cut = margins.before[d] < 0 ? -margins.before[d] : 0;
        const int64_t cut_after = margins.after[d] < 0 ? -margins.after[d] : 0;
        const int64_t length = input.sizes[d] - cut - cut_after;
        input = narrowed(input, d, cut, length > 0 ? length : 0);
        out = narrowed(out, d, margins.before[d] > 0 ? margins.before[d] : 0, length > 0 ? length : 0);
    }
    copy_elements(ctx, out, input);
}

template <class U>
void pad_with_border(diopiStreamHandle_t stream, const TensorView& out, const TensorView& input, const Margins& margins,
                     Border border) {
    using Value = typename Unit<U>::type;
    Value* target = static_cast<Value*>(out.data);
    const Value* source = static_cast<const Value*>(input.data);
    for_each_index(
        stream, out.numel, DIOPI_LAMBDA(int64_t i) {
            int64_t rest = i, to = 0, from = 0;
            for (int d = out.ndim - 1; d >= 0; --d) {
                const int64_t position = rest % out.sizes[d];
                rest /= out.sizes[d];
                to += position * out.strides[d];
                from += shown(border, position - margins.before[d], input.sizes[d]) * input.strides[d];
            }
            target[to] = source[from];
        });
}

void pad_tensor(Context ctx, const TensorView& out, const TensorView& input, const Sizes& pad, const char* mode,
                double value) {
    const Margins margins = margins_of(out, input, pad);
    if (mode == nullptr || std::strcmp(mode, "constant") == 0) return pad_with_value(ctx, out, input, margins, value);
    const bool reflect = std::strcmp(mode, "reflect") == 0, replicate = std::strcmp(mode, "replicate") == 0;
    require(reflect || replicate || std::strcmp(mode, "circular") == 0,
            "unknown padding mode '%s'; expected constant, reflect, replicate or circular", mode);
    for (int d = 0; d < input.ndim; ++d) {
        const int64_t most = reflect ? input.sizes[d] - 1 : input.sizes[d];
        const bool fits =
            replicate ? input.sizes[d] > 0 || out.sizes[d] == 0 : margins.before[d] <= most && margins.after[d] <= most;
        require(fits, "dimension %d of size %lld is too small for this padding", d, input.sizes[d]);
    }
    if (out.numel == 0) return;
    const TensorView source = converted(ctx, input, out.dtype);
    const Border border = reflect ? Border::reflect : replicate ? Border::replicate : Border::circular;
    dispatch_unit(out.dtype, [&](auto unit) {
        pad_with_border<typename decltype(unit)::plain>(stream_of(ctx), out, source, margins, border);
    });
}

// Windows of a dimension, with the position inside of a window as the last dimension.
TensorView windows_of(const TensorView& tensor, int dim, int64_t size, int64_t step, int64_t count) {
    const int64_t stride = tensor.strides[dim];
    TensorView result = tensor;
    result.sizes[dim] = count;
    result.strides[dim] = stride * step;
    return with_dim(result, result.ndim, size, stride);
}

void unfold(Context ctx, const TensorView& out, const TensorView& input, int64_t dim, int64_t size, int64_t step) {
    if (input.ndim == 0)
        return copy_elements(ctx, out, size == 0 ? narrowed(at_least_1d(input), 0, 0, 0) : at_least_1d(input));
    const int at = normalized_dim(dim, input.ndim);
    require(size >= 0 && size <= input.sizes[at] && step > 0,
            "windows of size %lld do not fit into dimension %d of size %lld", size, at, input.sizes[at]);
    const TensorView windows = windows_of(input, at, size, step, (input.sizes[at] - size) / step + 1);
    require_same_sizes(out, windows, "out", "input");
    copy_elements(ctx, out, windows);
}

// Each input position sums up the windows that show it.
template <class T>
void fold(diopiStreamHandle_t stream, const TensorView& grad_input, const TensorView& grad_output, int dim,
          int64_t size, int64_t step) {
    using A = AccumulateType<T>;
    TensorView starts = without_dim(grad_output, grad_output.ndim - 1);
    starts.sizes[dim] = grad_input.sizes[dim];
    starts.strides[dim] = 0;
    recounted(starts);
    TensorView positions = grad_input;  // with the position along the dimension itself as the second operand's offset
    for (int d = 0; d < positions.ndim; ++d) positions.strides[d] = d == dim ? 1 : 0;
    const TensorView operands[] = {grad_input, starts, positions};
    const Space<3> space = broadcast_space<3>(grad_input, operands);
    const int64_t windows = grad_output.sizes[dim], window_step = grad_output.strides[dim];
    const int64_t inner_step = grad_output.strides[grad_output.ndim - 1];
    T* target = grad_input.as<T>();
    const T* source = grad_output.as<T>();
    for_each_index(
        stream, grad_input.numel, DIOPI_LAMBDA(int64_t i) {
            const Offsets<3> at = space.offsets(i);
            const int64_t position = at[2];
            const int64_t first = position < size ? 0 : (position - size) / step + 1;
            const int64_t last = position / step < windows ? position / step : windows - 1;
            A sum = A(0);
            for (int64_t w = first; w <= last; ++w)
                sum += cast<A>(source[at[1] + w * window_step + (position - w * step) * inner_step]);
            target[at[0]] = cast<T>(sum);
        });
}

}  // namespace

diopiError_t diopiTril(Context ctx, Tensor out, ConstTensor input, int64_t diagonal) {
    return guarded([&] { triangle(ctx, required_view(out, "out"), required_view(input, "input"), diagonal, true); });
}

diopiError_t diopiTriu(Context ctx, Tensor out, ConstTensor input, int64_t diagonal) {
    return guarded([&] { triangle(ctx, required_view(out, "out"), required_view(input, "input"), diagonal, false); });
}

diopiError_t diopiTriuInp(Context ctx, Tensor input, int64_t diagonal) {
    return portable::diopiTriu(ctx, input, input, diagonal);
}

diopiError_t diopiArange(Context ctx, Tensor out, const diopiScalar_t* start, const diopiScalar_t* end,
                         const diopiScalar_t* step) {
    return guarded([&] {
        const TensorView result = required_view(out, "out");
        require_storable(result);
        static_cast<void>(scalar_as<double>(end, "end"));
        const bool floats = is_float_dtype(result.dtype) || (start != nullptr && is_float_scalar(*start)) ||
                            (step != nullptr && is_float_scalar(*step));
        if (floats) {
            count_up<double>(stream_of(ctx), result, scalar_or<double>(start, 0), scalar_or<double>(step, 1));
        } else {
            count_up<int64_t>(stream_of(ctx), result, scalar_or<int64_t>(start, 0), scalar_or<int64_t>(step, 1));
        }
    });
}

diopiError_t diopiLinspace(Context ctx, Tensor out, const diopiScalar_t* start, const diopiScalar_t* end,
                           int64_t steps) {
    return guarded([&] {
        const TensorView result = required_view(out, "out");
        require_storable(result);
        require(result.numel == steps, "linspace of %lld steps has as many elements", steps);
        interpolate(stream_of(ctx), result, scalar_as<double>(start, "start"), scalar_as<double>(end, "end"));
    });
}

diopiError_t diopiPad(Context ctx, Tensor out, ConstTensor input, Sizes pad, const char* mode, const double* value) {
    return guarded([&] {
        pad_tensor(ctx, required_view(out, "out"), required_view(input, "input"), pad, mode,
                   value == nullptr ? 0 : *value);
    });
}

diopiError_t diopiUnfold(Context ctx, Tensor out, ConstTensor input, int64_t dim, int64_t size, int64_t step) {
    return guarded([&] { unfold(ctx, required_view(out, "out"), required_view(input, "input"), dim, size, step); });
}

diopiError_t diopiUnfoldBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, Sizes, int64_t dim,
                                 int64_t size, int64_t step) {
    return guarded([&] {
        const TensorView result = at_least_1d(required_view(grad_input, "grad_input"));
        TensorView grads = required_view(grad_output, "grad_output");
        if (grads.ndim == result.ndim)
            grads = with_dim(grads, 0, 1, 0);  // the windows of a 0-d input have no dimension of their own
        require(grads.ndim == result.ndim + 1, "the windows of a tensor have one dimension more than the tensor");
        require(step > 0 && size == grads.sizes[result.ndim], "the gradient is not of windows of size %lld", size);
        dispatch<Float>(result.dtype, [&](auto type) {
            fold<typename decltype(type)::type>(stream_of(ctx), result, grads, normalized_dim(dim, result.ndim), size,
                                                step);
        });
    });
}

}  // namespace impl::portable

// gather and scatter along one dimension. A line along it is walked in order, so that colliding writes have one result.
#include <diopi/diopirt.h>

#include <cstring>

#include "copy/copy.h"
#include "copy/slices.h"
#include "core/scalar.h"
#include "core/unit.h"
#include "core/view.h"
#include "core/workspace.h"
#include "space/bounds.h"
#include "space/index.h"
#include "space/runs.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

enum class Reduce { none, add, multiply };

Reduce reduce_of(const char* name) {
    if (name == nullptr || *name == '\0') return Reduce::none;
    if (std::strcmp(name, "add") == 0) return Reduce::add;
    require(std::strcmp(name, "multiply") == 0, "unknown reduction '%s'; expected \"\", \"add\" or \"multiply\"", name);
    return Reduce::multiply;
}

// The lines of `index` along `dim`; operand 0 is the index, 1 the tensor with an element for each index, 2 the indexed
// one.
struct Lines {
    Space<3> starts;
    int64_t length;
    int64_t step[3];
    int64_t size;  // of the indexed dimension
};

// `tensor` with the sizes of `shape`, at its beginning.
TensorView clipped(TensorView tensor, const TensorView& shape, int dim, const char* name) {
    require(tensor.ndim == shape.ndim, "'%s' has %d dimensions, the index has %d", name, tensor.ndim, shape.ndim);
    for (int d = 0; d < shape.ndim; ++d) {
        require(d == dim || shape.sizes[d] <= tensor.sizes[d], "the index is larger than '%s' in dimension %d", name,
                d);
        tensor.sizes[d] = shape.sizes[d];
    }
    return recounted(tensor);
}

Lines lines_of(const TensorView& index, const TensorView& elements, const TensorView& indexed, int dim) {
    const TensorView views[] = {index, clipped(elements, index, -1, "src"), clipped(indexed, index, dim, "input")};
    const TensorView starts[] = {without_dim(views[0], dim), without_dim(views[1], dim), without_dim(views[2], dim)};
    return {broadcast_space<3>(starts[0], starts),
            index.sizes[dim],
            {index.strides[dim], elements.strides[dim], indexed.strides[dim]},
            indexed.sizes[dim]};
}

template <bool kTakes>
struct Move {
    template <class T>
    DIOPI_HD void operator()(T& entry, T& element) const {
        (kTakes ? element : entry) = kTakes ? entry : element;
    }
};
template <bool kAdds>
struct Combine {
    template <class T>
    DIOPI_HD void operator()(T& entry, T element) const {
        entry = static_cast<T>(kAdds ? entry + element : entry * element);
    }
};

// step(entry of `indexed`, element of `elements`) for each index.
template <class T, class I, class Step>
void walk_by(diopiStreamHandle_t stream, const Lines& lines, const I* indices, T* elements, T* indexed, Step step) {
    for_each_index(
        stream, lines.starts.numel, DIOPI_LAMBDA(int64_t line) {
            const Offsets<3> at = lines.starts.offsets(line);
            for (int64_t j = 0; j < lines.length; ++j) {
                const int64_t place = in_bounds(indices[at[0] + j * lines.step[0]], 0, lines.size);
                step(indexed[at[2] + place * lines.step[2]], elements[at[1] + j * lines.step[1]]);
            }
        });
}

template <class T, class Step>
void walk(Context ctx, const Lines& lines, const TensorView& index, void* elements, void* indexed, Step step) {
    dispatch<Index>(index.dtype, [&](auto type) {
        const auto* indices = index.as<typename decltype(type)::type>();
        walk_by(stream_of(ctx), lines, indices, static_cast<T*>(elements), static_cast<T*>(indexed), step);
    });
}

void gather(Context ctx, const TensorView& out, const TensorView& input, int64_t dim, const TensorView& index) {
    const TensorView places = at_least_1d(index), result = at_least_1d(out);
    const TensorView source = at_least_1d(converted(ctx, input, out.dtype));
    const int at = normalized_dim(dim, source.ndim);
    require_same_sizes(result, places, "out", "index");
    require_known_in_bounds(ctx, places, source.sizes[at], at, Negative::refused);
    if (places.numel == 0) return;
    const Lines lines = lines_of(places, result, source, at);
    dispatch_unit(result.dtype, [&](auto unit) {
        using Value = typename Unit<typename decltype(unit)::plain>::type;
        walk<Value>(ctx, lines, places, result.data, source.data, Move<true>{});
    });
}

// `target` holds the input already.
void scatter(Context ctx, const TensorView& target, int64_t dim, const TensorView& src, const TensorView& index,
             Reduce reduce) {
    const TensorView places = at_least_1d(index), result = at_least_1d(target);
    const int at = normalized_dim(dim, result.ndim);
    require_known_in_bounds(ctx, places, result.sizes[at], at, Negative::refused);
    if (places.numel == 0) return;
    const diopiDtype_t dtype = reduce == Reduce::none ? result.dtype : sum_dtype(result.dtype);
    const TensorView elements = at_least_1d(converted(ctx, src, dtype)), table = converted(ctx, result, dtype);
    const Lines lines = lines_of(places, elements, table, at);
    using Reduced = Types<float, double, int64_t, int32_t, int16_t, int8_t, uint8_t, bool>;
    if (reduce == Reduce::none) {
        dispatch_unit(dtype, [&](auto unit) {
            using Value = typename Unit<typename decltype(unit)::plain>::type;
            walk<Value>(ctx, lines, places, elements.data, table.data, Move<false>{});
        });
    } else {
        dispatch<Reduced>(dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            if (reduce == Reduce::add) return walk<T>(ctx, lines, places, elements.data, table.data, Combine<true>{});
            walk<T>(ctx, lines, places, elements.data, table.data, Combine<false>{});
        });
    }
    copy_elements(ctx, result, table);
}

// One element that stands for a whole tensor of the index's shape.
TensorView repeated_scalar(Context ctx, const diopiScalar_t* value, diopiDtype_t dtype, const TensorView& shape) {
    return expanded_to(scalar_tensor(ctx, value, dtype), shape);
}

}  // namespace

diopiError_t diopiGather(Context ctx, Tensor out, ConstTensor input, int64_t dim, ConstTensor index) {
    return guarded([&] {
        gather(ctx, required_view(out, "out"), required_view(input, "input"), dim, required_view(index, "index"));
    });
}

diopiError_t diopiGatherBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor, int64_t dim,
                                 ConstTensor index) {
    return guarded([&] {
        const TensorView result = required_view(grad_input, "grad_input");
        fill_zero(ctx, result);
        scatter(ctx, result, dim, required_view(grad_output, "grad_output"), required_view(index, "index"),
                Reduce::add);
    });
}

diopiError_t diopiScatterInp(Context ctx, Tensor input, int64_t dim, ConstTensor src, ConstTensor index,
                             const char* reduce) {
    return guarded([&] {
        scatter(ctx, required_view(input, "input"), dim, required_view(src, "src"), required_view(index, "index"),
                reduce_of(reduce));
    });
}

diopiError_t diopiScatterInpScalar(Context ctx, Tensor input, int64_t dim, const diopiScalar_t* value,
                                   ConstTensor index, const char* reduce) {
    return guarded([&] {
        const TensorView target = required_view(input, "input"), places = required_view(index, "index");
        scatter(ctx, target, dim, repeated_scalar(ctx, value, target.dtype, places), places, reduce_of(reduce));
    });
}

diopiError_t diopiScatter(Context ctx, Tensor out, ConstTensor input, int64_t dim, ConstTensor src, ConstTensor index,
                          const char* reduce) {
    const diopiError_t copied =
        guarded([&] { copy_elements(ctx, required_view(out, "out"), required_view(input, "input")); });
    return copied == diopiSuccess ? portable::diopiScatterInp(ctx, out, dim, src, index, reduce) : copied;
}

diopiError_t diopiScatterScalar(Context ctx, Tensor out, ConstTensor input, int64_t dim, const diopiScalar_t* value,
                                ConstTensor index, const char* reduce) {
    const diopiError_t copied =
        guarded([&] { copy_elements(ctx, required_view(out, "out"), required_view(input, "input")); });
    return copied == diopiSuccess ? portable::diopiScatterInpScalar(ctx, out, dim, value, index, reduce) : copied;
}

}  // namespace impl::portable

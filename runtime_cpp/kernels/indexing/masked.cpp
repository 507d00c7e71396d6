// Operators that a mask or a condition steers: where, masked_fill, masked_select, masked_scatter and nonzero.
#include <diopi/diopirt.h>

#include "copy/copy.h"
#include "copy/slices.h"
#include "core/scalar.h"
#include "core/unit.h"
#include "core/view.h"
#include "core/workspace.h"
#include "positions.h"
#include "reduction/reductions.h"
#include "space/index.h"
#include "space/runs.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// out = condition ? yes : no, all broadcast to out. The condition's elements are bytes: bool or uint8.
template <class U>
void choose_units(diopiStreamHandle_t stream, const Runs<4>& rows, void* out, const uint8_t* condition, const void* yes,
                  const void* no) {
    using Value = typename Unit<U>::type;
    Value* target = static_cast<Value*>(out);
    const Value* first = static_cast<const Value*>(yes);
    const Value* second = static_cast<const Value*>(no);
    for_runs(
        stream, rows.outer.numel, rows.length, DIOPI_LAMBDA(int64_t row, int64_t begin, int64_t end) {
            const Offsets<4> at = rows.outer.offsets(row);
            Value* to = target + at[0];
            const uint8_t* test = condition + at[1];
            const Value* a = first + at[2];
            const Value* b = second + at[3];
            if (rows.stride[0] == 1 && rows.stride[1] == 1 && rows.stride[2] == 1 && rows.stride[3] == 1) {
                for (int64_t j = begin; j < end; ++j) to[j] = test[j] != 0 ? a[j] : b[j];
            } else {
                for (int64_t j = begin; j < end; ++j)
                    to[j * rows.stride[0]] =
                        test[j * rows.stride[1]] != 0 ? a[j * rows.stride[2]] : b[j * rows.stride[3]];
            }
        });
}

void choose(Context ctx, const TensorView& out, const TensorView& condition, const TensorView& yes,
            const TensorView& no) {
    require(element_size(condition.dtype) == 1, "a condition must be bool or uint8, not %s",
            diopiDtypeName(condition.dtype));
    const TensorView operands[] = {out, condition, converted(ctx, yes, out.dtype), converted(ctx, no, out.dtype)};
    const Runs<4> rows = runs_of(broadcast_space<4>(out, operands, Visit::any_order));
    if (out.numel == 0) return;
    dispatch_unit(out.dtype, [&](auto unit) {
        choose_units<typename decltype(unit)::plain>(stream_of(ctx), rows, out.data, condition.as<uint8_t>(),
                                                     operands[2].data, operands[3].data);
    });
}

void fill_where(Context ctx, const TensorView& out, const TensorView& input, const TensorView& mask,
                const TensorView& value) {
    require(value.numel == 1, "masked_fill takes one value, got %lld", value.numel);
    TensorView one = value;
    one.ndim = 0;
    choose(ctx, out, mask, one, input);
}

// The shape that two tensors broadcast to.
TensorView common_shape(const TensorView& a, const TensorView& b) {
    const TensorView& longer = a.ndim >= b.ndim ? a : b;
    const TensorView& shorter = a.ndim >= b.ndim ? b : a;
    TensorView shape = longer;
    for (int d = 0; d < shorter.ndim; ++d) {
        int64_t& size = shape.sizes[longer.ndim - shorter.ndim + d];
        if (size == 1) size = shorter.sizes[d];
    }
    return recounted(shape);
}

// list[i] = tensor[positions[i]] or the reverse, positions counted in the row-major order of the tensor's shape.
template <class U, bool kTake>
void move_positions(diopiStreamHandle_t stream, const Positions& positions, const Space<1>& listed, void* list,
                    const Space<1>& space, void* tensor) {
    using Value = typename Unit<U>::type;
    Value* one_each = static_cast<Value*>(list);
    Value* elements = static_cast<Value*>(tensor);
    for_each_index(
        stream, positions.count, DIOPI_LAMBDA(int64_t i) {
            Value& element = elements[space.offset(positions.flat[i])];
            Value& entry = one_each[listed.offset(i)];
            if (kTake) {
                entry = element;
            } else {
                element = entry;
            }
        });
}

void put_positions(diopiStreamHandle_t stream, const Positions& positions, const TensorView& list,
                   const TensorView& tensor) {
    require(positions.count <= list.numel, "the mask selects %lld elements, the source has only %lld", positions.count,
            list.numel);
    dispatch_unit(tensor.dtype, [&](auto unit) {
        move_positions<typename decltype(unit)::plain, false>(stream, positions, space_of(list), list.data,
                                                              space_of(tensor), tensor.data);
    });
}

}  // namespace

diopiError_t diopiWhere(Context ctx, Tensor out, ConstTensor condition, ConstTensor input, ConstTensor other) {
    return guarded([&] {
        choose(ctx, required_view(out, "out"), required_view(condition, "condition"), required_view(input, "input"),
               required_view(other, "other"));
    });
}

diopiError_t diopiMaskedFill(Context ctx, Tensor out, ConstTensor input, ConstTensor mask, ConstTensor value) {
    return guarded([&] {
        fill_where(ctx, required_view(out, "out"), required_view(input, "input"), required_view(mask, "mask"),
                   required_view(value, "value"));
    });
}

diopiError_t diopiMaskedFillInp(Context ctx, Tensor input, ConstTensor mask, ConstTensor value) {
    return portable::diopiMaskedFill(ctx, input, input, mask, value);
}

diopiError_t diopiMaskedFillScalar(Context ctx, Tensor out, ConstTensor input, ConstTensor mask,
                                   const diopiScalar_t* value) {
    return guarded([&] {
        const TensorView result = required_view(out, "out");
        fill_where(ctx, result, required_view(input, "input"), required_view(mask, "mask"),
                   scalar_tensor(ctx, value, result.dtype));
    });
}

diopiError_t diopiMaskedFillInpScalar(Context ctx, Tensor input, ConstTensor mask, const diopiScalar_t* value) {
    return portable::diopiMaskedFillScalar(ctx, input, input, mask, value);
}

diopiError_t diopiMaskedSelect(Context ctx, Tensor* out, ConstTensor input, ConstTensor mask) {
    return guarded([&] {
        const TensorView source = required_view(input, "input");
        const TensorView shape = common_shape(source, required_view(mask, "mask"));
        const TensorView elements = expanded_to(source, shape);
        const Positions positions = nonzero_positions(ctx, expanded_to(view(mask), shape));
        const TensorView result = allocated(ctx, out, &positions.count, 1, source.dtype);
        if (result.numel == 0) return;
        dispatch_unit(source.dtype, [&](auto unit) {
            move_positions<typename decltype(unit)::plain, true>(stream_of(ctx), positions, space_of(result),
                                                                 result.data, space_of(elements), elements.data);
        });
    });
}

diopiError_t diopiMaskedSelectBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor input,
                                       ConstTensor mask) {
    return guarded([&] {
        const TensorView result = required_view(grad_input, "grad_input");
        const TensorView shape = common_shape(required_view(input, "input"), required_view(mask, "mask"));
        const bool whole = result.same_sizes(shape);
        const TensorView gradient = whole ? result : temporary_like(ctx, shape, result.dtype);
        fill_zero(ctx, gradient);
        const Positions positions = nonzero_positions(ctx, expanded_to(view(mask), shape));
        if (positions.count > 0)
            put_positions(stream_of(ctx), positions,
                          converted(ctx, required_view(grad_output, "grad_output"), result.dtype), gradient);
        if (!whole) sum_where_broadcast(ctx, result, gradient);
    });
}

diopiError_t diopiMaskedScatter(Context ctx, Tensor out, ConstTensor input, ConstTensor mask, ConstTensor source) {
    return guarded([&] {
        const TensorView result = required_view(out, "out");
        copy_elements(ctx, result, required_view(input, "input"));
        const Positions positions = nonzero_positions(ctx, expanded_to(required_view(mask, "mask"), result));
        if (positions.count > 0)
            put_positions(stream_of(ctx), positions, converted(ctx, required_view(source, "source"), result.dtype),
                          result);
    });
}

diopiError_t diopiNonzero(Context ctx, Tensor* out, ConstTensor input) {
    return guarded([&] {
        const TensorView tensor = required_view(input, "input");
        coordinates(ctx, out, nonzero_positions(ctx, tensor), tensor);
    });
}

}  // namespace impl::portable

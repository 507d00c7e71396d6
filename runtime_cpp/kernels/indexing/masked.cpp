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
#include "space/bounds.h"
#include "space/index.h"
#include "space/runs.h"
#include "space/strides.h"

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
            with_strides(rows.stride, [&](const auto& step) {
                for (int64_t j = begin; j < end; ++j)
                    to[j * step[0]] = test[j * step[1]] != 0 ? a[j * step[2]] : b[j * step[3]];
            });
        });
}

void require_condition(const TensorView& condition) {
    require(element_size(condition.dtype) == 1, "a condition must be bool or uint8, not %s",
            diopiDtypeName(condition.dtype));
}

void choose(Context ctx, const TensorView& out, const TensorView& condition, const TensorView& yes,
            const TensorView& no) {
    require_condition(condition);
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

// list[i] = tensor[positions[i]], positions counted in the row-major order of the tensor's shape.
template <class U>
void take_positions(diopiStreamHandle_t stream, const Positions& positions, void* list, const TensorView& tensor) {
    using Value = typename Unit<U>::type;
    const Space<1> space = space_of(tensor);
    Value* one_each = static_cast<Value*>(list);
    const Value* elements = static_cast<const Value*>(tensor.data);
    for_each_index(
        stream, positions.count, DIOPI_LAMBDA(int64_t i) { one_each[i] = elements[space.offset(positions.flat[i])]; });
}

// The elements of `tensor` that the mask selects become those of a list, in order.
template <class U>
void put_blocks(diopiStreamHandle_t stream, const PositionBlocks& blocks, const Space<2>& space, void* tensor,
                const uint8_t* mask, const Space<1>& listed, const void* list) {
    using Value = typename Unit<U>::type;
    Value* elements = static_cast<Value*>(tensor);
    const Value* values = static_cast<const Value*>(list);
    for_each_index(
        stream, blocks.count, DIOPI_LAMBDA(int64_t block) {
            int64_t next = blocks.starts[block];
            for (int64_t i = block * kPositionBlock; i < (block + 1) * kPositionBlock && i < space.numel; ++i) {
                const Offsets<2> at = space.offsets(i);
                if (mask[at[1]] != 0) elements[at[0]] = values[listed.offset(in_bounds(next++, 0, listed.numel))];
            }
        });
}

void put_selected(Context ctx, const TensorView& tensor, const TensorView& mask, const TensorView& list) {
    require_condition(mask);
    const TensorView operands[2] = {tensor, mask}, values = converted(ctx, list, tensor.dtype);
    const PositionBlocks blocks = position_blocks(ctx, expanded_to(mask, tensor));
    if (diopi::launch::kSynchronous) {
        const int64_t count = total_of(ctx, blocks);
        require(count <= list.numel, "the mask selects %lld elements, the source has only %lld", count, list.numel);
    }
    dispatch_unit(tensor.dtype, [&](auto unit) {
        put_blocks<typename decltype(unit)::plain>(stream_of(ctx), blocks, broadcast_space<2>(tensor, operands),
                                                   tensor.data, mask.as<uint8_t>(), space_of(values), values.data);
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
            take_positions<typename decltype(unit)::plain>(stream_of(ctx), positions, result.data, elements);
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
        put_selected(ctx, gradient, view(mask), required_view(grad_output, "grad_output"));
        if (!whole) sum_where_broadcast(ctx, result, gradient);
    });
}

diopiError_t diopiMaskedScatter(Context ctx, Tensor out, ConstTensor input, ConstTensor mask, ConstTensor source) {
    return guarded([&] {
        const TensorView result = required_view(out, "out");
        copy_elements(ctx, result, required_view(input, "input"));
        put_selected(ctx, result, required_view(mask, "mask"), required_view(source, "source"));
    });
}

diopiError_t diopiNonzero(Context ctx, Tensor* out, ConstTensor input) {
    return guarded([&] {
        const TensorView tensor = required_view(input, "input");
        coordinates(ctx, out, nonzero_positions(ctx, tensor), tensor);
    });
}

}  // namespace impl::portable

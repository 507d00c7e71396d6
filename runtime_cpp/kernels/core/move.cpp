// Copies and fills of strided views, row by row along the dimension that is fastest in the target.
#include "move.h"

#include "index.h"
#include "runs.h"
#include "unit.h"
#include "view.h"
#include "workspace.h"

namespace diopi::kernels {
namespace {

template <class To, class From>
DIOPI_HD inline void convert_run(To* to, int64_t to_stride, const From* from, int64_t from_stride, int64_t begin, int64_t end) {
    if (to_stride == 1 && from_stride == 1) {
        for (int64_t j = begin; j < end; ++j) to[j] = cast<To>(static_cast<From>(from[j]));
    } else {
        for (int64_t j = begin; j < end; ++j) to[j * to_stride] = cast<To>(static_cast<From>(from[j * from_stride]));
    }
}

template <class To, class From>
void convert(diopiStreamHandle_t stream, const Space<2>& space, void* to, const void* from) {
    const Rows<2> rows = rows_of(space);
    To* target = static_cast<To*>(to);
    const From* source = static_cast<const From*>(from);
    for_runs(stream, rows.outer.numel, rows.length, DIOPI_LAMBDA(int64_t row, int64_t begin, int64_t end) {
        const Offsets<2> at = rows.outer.offsets(row);
        convert_run(target + at[0], rows.stride[0], source + at[1], rows.stride[1], begin, end);
    });
}

template <class U>
void copy_units(diopiStreamHandle_t stream, const Space<2>& space, void* to, const void* from) {
    using Value = typename Unit<U>::type;
    const Rows<2> rows = rows_of(space);
    Value* target = static_cast<Value*>(to);
    const Value* source = static_cast<const Value*>(from);
    for_runs(stream, rows.outer.numel, rows.length, DIOPI_LAMBDA(int64_t row, int64_t begin, int64_t end) {
        const Offsets<2> at = rows.outer.offsets(row);
        Value* out = target + at[0];
        const Value* in = source + at[1];
        if (rows.stride[0] == 1 && rows.stride[1] == 1) {
            for (int64_t j = begin; j < end; ++j) out[j] = in[j];
        } else {
            for (int64_t j = begin; j < end; ++j) out[j * rows.stride[0]] = in[j * rows.stride[1]];
        }
    });
}

// Pairs that no training step converts on its hot path: one switch per element instead of one instantiation per pair.
void convert_any(diopiStreamHandle_t stream, const Space<2>& space, const TensorView& to, const TensorView& from) {
    const bool from_float = is_float_dtype(from.dtype);
    for_each_index(stream, space.numel, DIOPI_LAMBDA(int64_t i) {
        const Offsets<2> at = space.offsets(i);
        if (from_float) {
            store_as(to, at[0], load_as<double>(from, at[1]));
        } else if (from.dtype == diopi_dtype_uint64) {
            store_as(to, at[0], load_as<uint64_t>(from, at[1]));
        } else {
            store_as(to, at[0], load_as<int64_t>(from, at[1]));
        }
    });
}

template <class To>
void convert_to(diopiStreamHandle_t stream, const Space<2>& space, const TensorView& to, const TensorView& from) {
    if (is_in<Any>(from.dtype)) {
        dispatch<Any>(from.dtype, [&](auto type) { convert<To, typename decltype(type)::type>(stream, space, to.data, from.data); });
    } else {
        convert_any(stream, space, to, from);
    }
}

template <class U>
void fill_units(diopiStreamHandle_t stream, const Space<1>& space, void* to, uint64_t bits) {
    using Value = typename Unit<U>::type;
    const Rows<1> rows = rows_of(space);
    Value* target = static_cast<Value*>(to);
    const U value = static_cast<U>(bits);
    for_runs(stream, rows.outer.numel, rows.length, DIOPI_LAMBDA(int64_t row, int64_t begin, int64_t end) {
        Value* out = target + rows.outer.offset(row);
        if (rows.stride[0] == 1) {
            for (int64_t j = begin; j < end; ++j) out[j] = value;
        } else {
            for (int64_t j = begin; j < end; ++j) out[j * rows.stride[0]] = value;
        }
    });
}

void fill_bits(diopiStreamHandle_t stream, const TensorView& to, uint64_t bits) {
    if (to.numel == 0) return;
    const TensorView operands[] = {to};
    const Space<1> space = broadcast_space<1>(to, operands, Visit::any_order);
    dispatch_unit(to.dtype, [&](auto unit) { fill_units<typename decltype(unit)::plain>(stream, space, to.data, bits); });
}

bool same_memory(const TensorView& a, const TensorView& b) {
    if (a.data != b.data || a.dtype != b.dtype || !a.same_sizes(b)) return false;
    for (int d = 0; d < a.ndim; ++d) {
        if (a.sizes[d] != 1 && a.strides[d] != b.strides[d]) return false;
    }
    return true;
}

}  // namespace

void copy(diopiStreamHandle_t stream, const TensorView& to, const TensorView& from) {
    if (same_memory(to, from)) return;
    const TensorView operands[] = {to, from};
    const Space<2> space = broadcast_space<2>(to, operands, Visit::any_order);
    if (to.numel == 0) return;
    if (to.dtype == from.dtype) {
        dispatch_unit(to.dtype, [&](auto unit) { copy_units<typename decltype(unit)::plain>(stream, space, to.data, from.data); });
        return;
    }
    require_storable(to);
    require_storable(from);
    switch (to.dtype) {
        case diopi_dtype_float32: convert_to<float>(stream, space, to, from); break;
        case diopi_dtype_float64: convert_to<double>(stream, space, to, from); break;
        case diopi_dtype_float16: convert_to<Half>(stream, space, to, from); break;
        case diopi_dtype_bfloat16: convert_to<BFloat16>(stream, space, to, from); break;
        case diopi_dtype_int64: convert_to<int64_t>(stream, space, to, from); break;
        default: convert_any(stream, space, to, from);
    }
}

void fill(diopiStreamHandle_t stream, const TensorView& to, const diopiScalar_t& value) { fill_bits(stream, to, unit_bits(value, to.dtype)); }

// Every dtype's zero is all bits zero.
void fill_zero(diopiStreamHandle_t stream, const TensorView& to) { fill_bits(stream, to, 0); }

TensorView dense(diopiContextHandle_t ctx, const TensorView& from, diopiDtype_t dtype) {
    if (from.dtype == dtype && from.contiguous()) return from;
    const TensorView result = temporary_like(ctx, from, dtype);
    copy(stream_of(ctx), result, from);
    return result;
}

TensorView converted(diopiContextHandle_t ctx, const TensorView& from, diopiDtype_t dtype) {
    return from.dtype == dtype ? from : dense(ctx, from, dtype);
}

TensorView scalar_tensor(diopiContextHandle_t ctx, const diopiScalar_t* value, diopiDtype_t dtype) {
    require(value != nullptr, "the scalar 'value' is null");
    const TensorView result = temporary(ctx, nullptr, 0, dtype);
    fill(stream_of(ctx), result, *value);
    return result;
}

}  // namespace diopi::kernels

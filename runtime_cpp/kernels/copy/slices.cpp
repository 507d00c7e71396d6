// Slices at listed offsets, moved and summed row by row.
#include "slices.h"

#include "core/unit.h"
#include "core/view.h"
#include "core/workspace.h"
#include "sorting/sorting.h"
#include "space/bounds.h"
#include "space/runs.h"
#include "space/strides.h"

namespace diopi::kernels {
namespace {

// The slices' rows, with the list as operand 0 and the tensor as operand 1.
struct Plan {
    Runs<2> rows;
    int64_t list_step;
    const int64_t* offsets;
    int64_t count;
};

Plan plan_of(const Slices& slices, const TensorView& list, int dim) {
    const TensorView one = without_dim(list, dim);
    require(list.sizes[dim] == slices.count && one.same_sizes(slices.first),
            "the values at the indices do not have the shape of what is indexed");
    const TensorView operands[] = {one, slices.first};
    return {runs_of(broadcast_space<2>(one, operands, Visit::any_order)), list.strides[dim], slices.offsets,
            slices.count};
}

// What is put goes in order on a host, where few threads lose nothing by it: of equal indices the last one wins. On a GPU
// any may win, as torch leaves open.
template <class U, bool kTake>
void move_slices(diopiStreamHandle_t stream, const Plan& plan, void* list, void* tensor) {
    using Value = typename Unit<U>::type;
    Value* listed = static_cast<Value*>(list);
    Value* sliced = static_cast<Value*>(tensor);
    const int64_t shares = kTake || kRunLength == 1 ? plan.count : 1;
    const Divider of_slice(plan.rows.outer.numel);
    for_runs(
        stream, shares * plan.rows.outer.numel, plan.rows.length,
        DIOPI_LAMBDA(int64_t share, int64_t begin, int64_t end) {
            const Offsets<2> at = plan.rows.outer.offsets(of_slice.split(share));
            const int64_t strides[2] = {plan.rows.stride[kTake ? 0 : 1], plan.rows.stride[kTake ? 1 : 0]};
            for (int64_t slice = share; slice < plan.count; slice += shares) {
                Value* in_list = listed + at[0] + slice * plan.list_step;
                Value* in_tensor = sliced + at[1] + plan.offsets[slice];
                Value* to = kTake ? in_list : in_tensor;
                const Value* from = kTake ? in_tensor : in_list;
                with_strides(strides, [&](const auto& step) {
                    for (int64_t j = begin; j < end; ++j) to[j * step[0]] = from[j * step[1]];
                });
            }
        });
}

#if defined(DIOPI_LAUNCHER_HAS_TEAMS)

// A thread has an element of all slices at one offset: few ones are found by looking at all, many by their order.
template <class T, bool kSorted>
void add_slices(diopiStreamHandle_t stream, const Plan& plan, const void* list, void* tensor, SortedPlaces sorted) {
    const T* listed = static_cast<const T*>(list);
    T* sliced = static_cast<T*>(tensor);
    const Divider of_slice(plan.rows.outer.numel);
    for_runs(
        stream, plan.count * plan.rows.outer.numel, plan.rows.length, DIOPI_LAMBDA(int64_t share, int64_t j, int64_t) {
            const auto slice = [&](int64_t place) { return kSorted ? sorted[place] : place; };
            const Offsets<2> at = plan.rows.outer.offsets(of_slice.split(share));
            const int64_t own = plan.offsets[slice(share)];
            const T* from = listed + at[0] + j * plan.rows.stride[0];
            T* to = sliced + at[1] + own + j * plan.rows.stride[1];
            T sum = *to;
            bool is_first = true;
            for (int64_t k = kSorted && share > 0 ? share - 1 : 0; k < plan.count; ++k) {
                const int64_t next = slice(k);
                const bool adds = plan.offsets[next] == own;
                is_first = is_first && (k >= share || !adds);
                if (kSorted && (!is_first || (k > share && !adds))) break;
                if (adds) sum = static_cast<T>(sum + from[next * plan.list_step]);
            }
            if (is_first) *to = sum;
        });
}

template <class T>
void add_slices(Context ctx, const Plan& plan, const void* list, void* tensor) {
    if (plan.count <= 128) return add_slices<T, false>(stream_of(ctx), plan, list, tensor, {});
    const Indices values{dense_view(const_cast<int64_t*>(plan.offsets), diopi_dtype_int64, &plan.count, 1)};
    add_slices<T, true>(stream_of(ctx), plan, list, tensor, sorted_places(ctx, 1, plan.count, values));
}

#else

template <class T>
void add_slices(Context ctx, const Plan& plan, const void* list, void* tensor) {
    const T* listed = static_cast<const T*>(list);
    T* sliced = static_cast<T*>(tensor);
    for_runs(
        stream_of(ctx), plan.rows.outer.numel, plan.rows.length, DIOPI_LAMBDA(int64_t row, int64_t begin, int64_t end) {
            const Offsets<2> at = plan.rows.outer.offsets(row);
            for (int64_t k = 0; k < plan.count; ++k) {
                const T* from = listed + at[0] + k * plan.list_step;
                T* to = sliced + at[1] + plan.offsets[k];
                for (int64_t j = begin; j < end; ++j)
                    to[j * plan.rows.stride[1]] =
                        static_cast<T>(to[j * plan.rows.stride[1]] + from[j * plan.rows.stride[0]]);
            }
        });
}

#endif

template <bool kTake>
void move(diopiStreamHandle_t stream, const Slices& slices, const TensorView& list, int dim) {
    const Plan plan = plan_of(slices, list, dim);
    if (list.numel == 0) return;
    dispatch_unit(list.dtype, [&](auto unit) {
        move_slices<typename decltype(unit)::plain, kTake>(stream, plan, list.data, slices.first.data);
    });
}

template <class I>
void add_offsets_of(diopiStreamHandle_t stream, int64_t* offsets, const TensorView& index, int64_t size, int64_t stride,
                    int64_t low, bool first) {
    const Space<1> space = space_of(index);
    const I* values = index.as<I>();
    for_each_index(
        stream, space.numel, DIOPI_LAMBDA(int64_t i) {
            const int64_t position = in_bounds(values[space.offset(i)], low, size);
            const int64_t offset = (position < 0 ? position + size : position) * stride;
            offsets[i] = first ? offset : offsets[i] + offset;
        });
}

}  // namespace

diopiDtype_t sum_dtype(diopiDtype_t dtype) {
    return dtype == diopi_dtype_float16 || dtype == diopi_dtype_bfloat16 ? diopi_dtype_float32 : dtype;
}

void add_offsets(diopiStreamHandle_t stream, int64_t* offsets, const TensorView& index, int64_t size, int64_t stride,
                 int64_t low, bool first) {
    dispatch<Index>(index.dtype, [&](auto type) {
        add_offsets_of<typename decltype(type)::type>(stream, offsets, index, size, stride, low, first);
    });
}

Slices slices_at(Context ctx, const TensorView& tensor, int dim, const TensorView& index, bool from_the_end) {
    require(index.ndim <= 1, "an index along one dimension is a list, not a tensor of %d dimensions", index.ndim);
    require_known_in_bounds(ctx, index, tensor.sizes[dim], dim,
                            from_the_end ? Negative::from_the_end : Negative::refused);
    auto* offsets = workspace_of<int64_t>(ctx, index.numel);
    add_offsets(stream_of(ctx), offsets, index, tensor.sizes[dim], tensor.strides[dim],
                from_the_end ? -tensor.sizes[dim] : 0, true);
    return {without_dim(tensor, dim), offsets, index.numel};
}

void take(diopiStreamHandle_t stream, const TensorView& list, int dim, const Slices& slices) {
    move<true>(stream, slices, list, dim);
}

void put(diopiStreamHandle_t stream, const Slices& slices, const TensorView& list, int dim) {
    move<false>(stream, slices, list, dim);
}

void accumulate(Context ctx, const Slices& slices, const TensorView& list, int dim) {
    using Summed = Types<float, double, int64_t, int32_t, int16_t, int8_t, uint8_t, bool>;
    const Plan plan = plan_of(slices, list, dim);
    if (list.numel == 0) return;
    dispatch<Summed>(list.dtype, [&](auto type) {
        add_slices<typename decltype(type)::type>(ctx, plan, list.data, slices.first.data);
    });
}

}  // namespace diopi::kernels

// The different elements of a tensor, or its different slices along a dimension, in ascending order.
#include <diopi/diopirt.h>

#include "core/copy.h"
#include "core/host_list.h"
#include "core/index.h"
#include "core/sorting.h"
#include "core/view.h"
#include "core/workspace.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// [count, width], contiguous. Slices are compared at their first elements that differ.
template <class T>
struct SliceOrder {
    const T* values;
    int64_t width;

    DIOPI_HD bool overtakes(int64_t later, int64_t earlier) const {
        const T* a = values + later * width;
        const T* b = values + earlier * width;
        for (int64_t k = 0; k < width; ++k) {
            if (less(a[k], b[k])) return true;
            if (less(b[k], a[k])) return false;
        }
        return false;
    }

    // A slice with NaN is no other's equal.
    DIOPI_HD bool differ(int64_t i, int64_t j) const {
        for (int64_t k = 0; k < width; ++k) {
            const T a = values[i * width + k];
            if (is_nan(a) || less(a, values[j * width + k]) || less(values[j * width + k], a)) return true;
        }
        return false;
    }
};

// What is found of `count` slices, on the device; only the first `*different` elements of two lists count.
struct Found {
    int64_t* different;
    int64_t* first;    // a slice of each kind
    int64_t* repeats;  // how often there is that kind
    int64_t* kind;     // of each slice
};

template <class T>
struct FindTask {
    SliceOrder<T> order;
    int64_t count;
    int64_t* places;
    int64_t* spare;
    Found found;

    DIOPI_HD void operator()() const {
        for (int64_t i = 0; i < count; ++i) places[i] = i;
        const int64_t* sorted = merge_sort(places, spare, count, order);
        int64_t kinds = 0;
        for (int64_t i = 0; i < count; ++i) {
            if (i == 0 || order.differ(sorted[i], sorted[i - 1])) {
                found.first[kinds] = sorted[i];
                found.repeats[kinds] = 0;
                ++kinds;
            }
            ++found.repeats[kinds - 1];
            found.kind[sorted[i]] = kinds - 1;
        }
        *found.different = kinds;
    }
};

template <class T>
struct TakeTask {
    Space<1> space;  // of the result, one kind after another
    T* out;
    const T* values;
    const int64_t* first;
    int64_t width;

    DIOPI_HD void operator()(int64_t i) const {
        out[space.offset(i)] = values[first[i / width] * width + i % width];
    }
};

struct StoreListTask {
    Space<1> space;
    TensorView out;
    const int64_t* list;
    DIOPI_HD void operator()(int64_t i) const { store_as(out, space.offset(i), list[i]); }
};

void store_list(Context ctx, const TensorView& out, const int64_t* list) {
    for_each(ctx, out.numel, StoreListTask{space_of(out), out, list});
}

// Dimension `dim` before all others.
TensorView brought_first(const TensorView& tensor, int dim) {
    return with_dim(without_dim(tensor, dim), 0, tensor.sizes[dim], tensor.strides[dim]);
}

}  // namespace

// The result is sorted always, which is right for every value of `sorted`.
diopiError_t diopiUnique(Context ctx, Tensor* out, ConstTensor input, const int64_t* dim, bool, bool return_counts,
                         Tensor indices, Tensor* counts) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        const int along = dim == nullptr || x.ndim == 0 ? -1 : normalized_dim(*dim, x.ndim);
        const TensorView list = contiguous_as(ctx, along < 0 ? x : brought_first(x, along), x.dtype);
        const int64_t count = along < 0 ? x.numel : x.sizes[along];
        require(count == 0 || x.numel > 0, "slices without elements cannot be told apart");
        const int64_t width = count == 0 ? 1 : x.numel / count;
        const TensorView different = temporary(ctx, nullptr, 0, diopi_dtype_int64);
        const Found found{different.as<int64_t>(), workspace_of<int64_t>(ctx, count),
                          workspace_of<int64_t>(ctx, count), workspace_of<int64_t>(ctx, count)};
        dispatch<Any>(x.dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            const T* const values = list.as<T>();
            run_once(ctx, FindTask<T>{{values, width}, count, workspace_of<int64_t>(ctx, count),
                                      workspace_of<int64_t>(ctx, count), found});
            const int64_t kinds = read_back(ctx, different)[0];
            TensorView shape = along < 0 ? dense_view(nullptr, x.dtype, &kinds, 1) : x;
            if (along >= 0) shape.sizes[along] = kinds;
            const TensorView result = allocated(ctx, out, shape.sizes, shape.ndim, x.dtype);
            for_each(ctx, result.numel, TakeTask<T>{space_of(along < 0 ? result : brought_first(result, along)),
                                                    result.as<T>(), values, found.first, width});
            if (return_counts && counts != nullptr)
                store_list(ctx, allocated(ctx, counts, &kinds, 1, diopi_dtype_int64), found.repeats);
        });
        if (indices == nullptr) return;
        const TensorView kind = view(indices);
        require_storable(kind);
        require(kind.numel == count, "'indices' has a position for each element or slice");
        store_list(ctx, kind, found.kind);
    });
}

}  // namespace impl::portable

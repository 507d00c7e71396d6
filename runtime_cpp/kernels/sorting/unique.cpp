// The different elements of a tensor, or its different slices along a dimension, in ascending order.
#include <diopi/diopirt.h>

#include "copy/copy.h"
#include "core/host_list.h"
#include "core/view.h"
#include "core/workspace.h"
#include "reduction/scan.h"
#include "sorting.h"
#include "space/index.h"

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
        for (int64_t k = 0; k + 1 < width; ++k) {
            if (less(a[k], b[k])) return true;
            if (less(b[k], a[k])) return false;
        }
        return less(a[width - 1], b[width - 1]);
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

struct CountUpTask {
    int64_t* places;
    DIOPI_HD void operator()(int64_t i) const { places[i] = i; }
};

template <class T>
struct Elements {
    const T* values;
    DIOPI_HD T operator()(int64_t i) const { return values[i]; }
};

template <class T>
SortedPlaces sorted_slices(Context ctx, const T* values, int64_t count, int64_t width) {
    if (width == 1) return sorted_places(ctx, 1, count, Elements<T>{values});
    auto* const places = workspace_of<int64_t>(ctx, count);
    auto* const spare = workspace_of<int64_t>(ctx, count);
    for_each(ctx, count, CountUpTask{places});
    return {sort_lines(ctx, places, spare, 1, count, SliceOrder<T>{values, width}), 1};
}

// What is found of `count` slices, on the device.
struct Found {
    int64_t* different;
    int64_t* starts;  // of so many kinds among the sorted slices, and where the last one ends
    int64_t* kind;    // of each slice
};

// The number of a kind is how many slices before differ from the one before them.
template <class T>
struct Kinds {
    using State = int64_t;
    SliceOrder<T> order;  // of the sorted slices
    int64_t count;
    SortedPlaces sorted;
    Found found;

    DIOPI_HD int start(int64_t) const { return 0; }
    DIOPI_HD int64_t load(int, int64_t i) const { return i == 0 || order.differ(i, i - 1) ? 1 : 0; }
    DIOPI_HD void store(int at, int64_t i, int64_t kinds) const {
        found.kind[sorted[i]] = kinds - 1;
        if (load(at, i) != 0) found.starts[kinds - 1] = i;
        if (i + 1 < count) return;
        found.starts[kinds] = count;
        *found.different = kinds;
    }
};

template <class T>
struct TakeTask {
    Space<1> space;  // of the result, one slice after another
    T* out;
    const T* values;
    SortedPlaces slices;
    int64_t width;

    DIOPI_HD void operator()(int64_t i) const { out[space.offset(i)] = values[slices[i / width] * width + i % width]; }
};

struct StoreKindTask {
    Space<1> space;
    TensorView out;
    const int64_t* kind;
    DIOPI_HD void operator()(int64_t i) const { store_as(out, space.offset(i), kind[i]); }
};

struct StoreCountTask {
    TensorView out;
    const int64_t* starts;
    DIOPI_HD void operator()(int64_t i) const { store_as(out, i * out.strides[0], starts[i + 1] - starts[i]); }
};

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
        const Found found{different.as<int64_t>(), workspace_of<int64_t>(ctx, count + 1),
                          workspace_of<int64_t>(ctx, count)};
        dispatch<Any>(x.dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            const T* const values = list.as<T>();
            const SortedPlaces sorted = sorted_slices(ctx, values, count, width);
            const TensorView ordered = temporary_like(ctx, list, x.dtype);
            for_each(ctx, x.numel, TakeTask<T>{space_of(ordered), ordered.as<T>(), values, sorted, width});
            scan(ctx, 1, count, Kinds<T>{{ordered.as<T>(), width}, count, sorted, found});
            const int64_t kinds = count == 0 ? 0 : read_back(ctx, different)[0];
            TensorView shape = along < 0 ? dense_view(nullptr, x.dtype, &kinds, 1) : x;
            if (along >= 0) shape.sizes[along] = kinds;
            const TensorView result = allocated(ctx, out, shape.sizes, shape.ndim, x.dtype);
            for_each(ctx, result.numel,
                     TakeTask<T>{space_of(along < 0 ? result : brought_first(result, along)),
                                 result.as<T>(),
                                 ordered.as<T>(),
                                 {found.starts, 1},
                                 width});
            if (return_counts && counts != nullptr)
                for_each(ctx, kinds,
                         StoreCountTask{allocated(ctx, counts, &kinds, 1, diopi_dtype_int64), found.starts});
        });
        if (indices == nullptr) return;
        const TensorView kind = view(indices);
        require_storable(kind);
        require(kind.numel == count, "'indices' has a position for each element or slice");
        for_each(ctx, count, StoreKindTask{space_of(kind), kind, found.kind});
    });
}

}  // namespace impl::portable

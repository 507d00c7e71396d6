// TensorView: everything that a kernel needs to know of a tensor, read once and copied by value to the device.
#pragma once

#include <diopi/diopirt.h>

#include <type_traits>

#include "dtype.h"
#include "error.h"
#include "handles.h"
#include "host_device.h"
#include "launcher.h"

namespace diopi::kernels {

constexpr int kMaxDims = 8;

struct TensorView {
    void* data;  // an address that device code can use; null for an undefined tensor or one without elements
    diopiDtype_t dtype;
    int32_t ndim;
    int64_t numel;
    int64_t sizes[kMaxDims];
    int64_t strides[kMaxDims];  // in elements

    DIOPI_HD bool defined() const { return ndim >= 0; }
    DIOPI_HD explicit operator bool() const { return defined(); }

    template <class T>
    DIOPI_HD T* as() const {
        return static_cast<T*>(data);
    }

    // Row-major without gaps; the stride of a dimension of size one does not count.
    DIOPI_HD bool contiguous() const {
        int64_t expected = 1;
        for (int d = ndim - 1; d >= 0; --d) {
            if (sizes[d] != 1 && strides[d] != expected) return false;
            expected *= sizes[d];
        }
        return true;
    }

    DIOPI_HD bool same_sizes(const TensorView& other) const {
        if (ndim != other.ndim) return false;
        for (int d = 0; d < ndim; ++d) {
            if (sizes[d] != other.sizes[d]) return false;
        }
        return true;
    }
};
static_assert(std::is_trivially_copyable_v<TensorView>, "views travel by value to the device");

inline TensorView undefined_view() {
    TensorView none{};
    none.dtype = diopi_dtype_unsupported;
    none.ndim = -1;
    return none;
}

// Reads a tensor into `result` itself: a copy of a view that was just written in parts waits for its stores.
// Fails on more than kMaxDims dimensions.
inline void read_view(diopiConstTensorHandle_t handle, TensorView& result) {
    const void* data = nullptr;
    Sizes sizes{};
    Sizes strides{};
    check(diopiGetTensorDataConst(handle, &data), "a tensor gives no data pointer");
    check(diopiGetTensorShape(handle, &sizes), "a tensor gives no shape");
    check(diopiGetTensorStride(handle, &strides), "a tensor gives no strides");
    check(diopiGetTensorDtype(handle, &result.dtype), "a tensor gives no dtype");
    require_or_fall_back(sizes.len <= kMaxDims, "a tensor has %lld dimensions, the kernels take at most %d", sizes.len,
                         kMaxDims);
    result.data = data == nullptr ? nullptr : launch::device_address(data);
    result.ndim = static_cast<int32_t>(sizes.len);
    result.numel = 1;
    for (int d = 0; d < result.ndim; ++d) {
        result.sizes[d] = sizes.data[d];
        result.strides[d] = strides.data[d];
        result.numel *= sizes.data[d];
    }
}

// A null handle gives an undefined view.
inline TensorView view(diopiConstTensorHandle_t handle) {
    TensorView result;
    if (handle == nullptr) {
        result = undefined_view();
    } else {
        read_view(handle, result);
    }
    return result;
}

// Like view(), for an argument that must be there.
inline TensorView required_view(diopiConstTensorHandle_t handle, const char* name) {
    require(handle != nullptr, "the tensor '%s' is null", name);
    return view(handle);
}

// Python's rule for a negative dimension; a 0-d tensor counts as one dimension. Fails when out of range.
inline int normalized_dim(int64_t dim, int ndim) {
    const int64_t range = ndim > 0 ? ndim : 1;
    require(dim >= -range && dim < range, "dimension %lld is out of range: expected %lld to %lld", dim, -range,
            range - 1);
    return static_cast<int>(dim < 0 ? dim + range : dim);
}

inline diopiStreamHandle_t stream_of(diopiContextHandle_t ctx) {
    diopiStreamHandle_t stream = nullptr;
    check(diopiGetStream(ctx, &stream), "the context gives no stream");
    return stream;
}

// Runs task(i) on the device for each i in [0, count).
template <class Task>
void for_each(diopiContextHandle_t ctx, int64_t count, const Task& task) {
    check_launch(launch::parallel_for(stream_of(ctx), count, task));
}

// Runs Task<T>{members...}(i) for each i, T being the type of `dtype`; one outside of the set fails.
// e.g. for_each_typed<Float, ScoreTask>(ctx, scores.dtype, scores.numel, scores, queries);
template <class Set, template <class> class Task, class... Members>
void for_each_typed(diopiContextHandle_t ctx, diopiDtype_t dtype, int64_t count, const Members&... members) {
    dispatch<Set>(dtype, [&](auto type) { for_each(ctx, count, Task<typename decltype(type)::type>{members...}); });
}

// The value at an element offset, whatever the dtype; for code where one switch per element does not matter.
template <class To>
DIOPI_HD inline To load_as(const TensorView& tensor, int64_t offset) {
    switch (tensor.dtype) {
#define DIOPI_LOAD(name, type) \
    case diopi_dtype_##name: return cast<To>(tensor.as<type>()[offset]);
        DIOPI_FOR_EACH_CPP_DTYPE(DIOPI_LOAD)
#undef DIOPI_LOAD
        default: return To(0);  // checked on the host: require_storable
    }
}

template <class From>
DIOPI_HD inline void store_as(const TensorView& tensor, int64_t offset, From value) {
    switch (tensor.dtype) {
#define DIOPI_STORE(name, type) \
    case diopi_dtype_##name: tensor.as<type>()[offset] = cast<type>(value); break;
        DIOPI_FOR_EACH_CPP_DTYPE(DIOPI_STORE)
#undef DIOPI_STORE
        default: break;
    }
}

inline void require_storable(const TensorView& tensor) {
    if (!is_in<Storable>(tensor.dtype)) fail_dtype(tensor.dtype);
}

}  // namespace diopi::kernels

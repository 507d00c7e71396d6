// Checks of tensors' elements before they are used, of indices above all.
#pragma once

#include <diopi/diopirt.h>

#include <cassert>
#include <cstdint>
#include <stdexcept>

#include "core/launcher.h"
#include "core/tensor.h"
#include "core/workspace.h"
#include "index.h"

namespace diopi::kernels {

template <class T>
struct Finding {
    int64_t found;  // 0 or 1
    T element;
};

// The first element that is not inside(element), where launch::kSynchronous says that waiting for it is cheap.
template <class T, class Inside>
Finding<T> first_outside(Context ctx, const TensorView& tensor, const Inside& inside) {
    const Space<1> space = space_of(tensor);
    const T* values = tensor.as<T>();
    auto* finding = workspace_of<Finding<T>>(ctx, 1);
    const auto look = DIOPI_LAMBDA(int64_t) {
        *finding = Finding<T>{};
        const int64_t inner = space.inner_size(), stride = space.inner_stride(0);
        for (int64_t first = 0; first < space.numel; first += inner) {
            const T* row = values + space.offset(first);
            for (int64_t j = 0; j < inner; ++j) {
                if (inside(row[j * stride])) continue;
                *finding = {1, row[j * stride]};
                return;
            }
        }
    };
    check(launch::parallel_for(stream_of(ctx), 1, look), "a check of a tensor could not be launched");
#if defined(DIOPI_LAUNCHER_HAS_RECORDS)
    // What is recorded cannot be waited for: such an element ends the kernel that finds it, as on a GPU.
    if (launch::is_recorded(stream_of(ctx))) {
        const auto refuse = [finding](int64_t) {
            if (finding->found != 0) throw std::out_of_range("an element of a tensor is out of bounds");
        };
        check(launch::parallel_for(stream_of(ctx), 1, refuse), "a check of a tensor could not be launched");
        return {};
    }
#endif
    Finding<T> result{};
    check(launch::copy_to_host(stream_of(ctx), &result, finding, sizeof(result)),
          "a result could not be read back from the device");
    return result;
}

// Which indices a dimension of n elements takes: [0, n), or [-n, n) with the negative ones counted from the end.
enum class Negative { refused, from_the_end };

// Fails with the first index that is out of range. It waits for the result where launch::kSynchronous says that this is
// cheap. On a GPU the wait would cost more than the operator: there such an index ends the kernel that finds it, and with
// it the process's use of the device, as torch's own kernels do.
void require_in_bounds(Context ctx, const TensorView& index, int64_t size, int dim, Negative negative);

// The same for a kernel that itself reads each index with in_bounds.
inline void require_known_in_bounds(Context ctx, const TensorView& index, int64_t size, int dim, Negative negative) {
    if (launch::kSynchronous) require_in_bounds(ctx, index, size, dim, negative);
}
// Ends a kernel of a GPU.
DIOPI_HD inline void require_in_kernel([[maybe_unused]] bool inside, [[maybe_unused]] const char* otherwise) {
#ifdef __CUDA_ARCH__
    if (!inside) __assert_fail(otherwise, __FILE__, __LINE__, __func__);
#endif
}
DIOPI_HD inline int64_t in_bounds(int64_t index, int64_t low, int64_t high) {
    require_in_kernel(index >= low && index < high, "an index is out of bounds");
    return index;
}

// An index tensor as int64 or int32; fails on any other dtype.
void require_index_dtype(const TensorView& index);

}  // namespace diopi::kernels

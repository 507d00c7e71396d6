// Numbers that the host must know, such as those that a shape depends on.
#ifndef DIOPI_KERNELS_CORE_READ_BACK_H_
#define DIOPI_KERNELS_CORE_READ_BACK_H_

#include <vector>

#include "copy.h"

namespace diopi::kernels {

// The elements of an integer tensor in row-major order; waits for them.
inline std::vector<int64_t> read_back(Context ctx, const TensorView& tensor) {
    const TensorView numbers = contiguous_as(ctx, tensor, diopi_dtype_int64);
    std::vector<int64_t> result(static_cast<size_t>(numbers.numel));
    if (result.empty()) return result;
    check(launch::copy_to_host(stream_of(ctx), result.data(), numbers.data,
                               numbers.numel * static_cast<int64_t>(sizeof(int64_t))),
          "numbers could not be read back from the device");
    return result;
}

}  // namespace diopi::kernels

#endif  // DIOPI_KERNELS_CORE_READ_BACK_H_

// Lists of numbers between the host and the device: what kernels read of it, and what the host must know, such as
// numbers that a shape depends on.
#pragma once

#include <diopi/diopirt.h>

#include <vector>

#include "copy/copy.h"
#include "view.h"
#include "workspace.h"

namespace diopi::kernels {

struct ListPart {
    static constexpr int64_t kLength = 64;

    int64_t* target;
    int64_t values[kLength];

    DIOPI_HD void operator()(int64_t i) const { target[i] = values[i]; }
};

// The list as an int64 tensor on the device. Its numbers travel as arguments of launches, so nothing waits.
inline TensorView on_device(Context ctx, const Sizes& list) {
    const TensorView result = temporary(ctx, &list.len, 1, diopi_dtype_int64);
    for (int64_t first = 0; first < list.len; first += ListPart::kLength) {
        const int64_t count = list.len - first < ListPart::kLength ? list.len - first : ListPart::kLength;
        ListPart part{result.as<int64_t>() + first, {}};
        for (int64_t i = 0; i < count; ++i) part.values[i] = list.data[first + i];
        for_each(ctx, count, part);
    }
    return result;
}

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

// Boxes, regions and polygons as rows of numbers in double: places that are rounded on the way would jump from pixel to
// pixel, and from kept to dropped.
#pragma once

#include <diopi/diopirt.h>

#include <cstdint>

#include "copy/copy.h"

namespace diopi::kernels {

struct Boxes {
    const double* numbers;  // on the device, row after row
    int64_t count;
    int64_t width;
    DIOPI_HD const double* operator[](int64_t row) const { return numbers + row * width; }
};

// The last dimension is a row of `least` numbers or more.
inline Boxes boxes_of(Context ctx, ConstTensor handle, const char* name, int64_t least) {
    const TensorView rows = required_view(handle, name);
    require(rows.ndim > 0 && rows.sizes[rows.ndim - 1] >= least, "'%s' has rows of less than %lld numbers", name,
            least);
    const int64_t width = rows.sizes[rows.ndim - 1];
    return {contiguous_as(ctx, rows, diopi_dtype_float64).as<double>(), rows.numel / width, width};
}

}  // namespace diopi::kernels

// Images between their pixels: a point's neighbours and what each of them counts. Outside, border pixels are replicated
// for up to one pixel and is zero farther out, or it is zero right away.
#pragma once

#include <cstdint>

#include "core/host_device.h"
#include "math/math.h"

namespace diopi::kernels {

struct ImagePoint {
    double y;
    double x;
};

// The two pixels of one axis that a position lies between.
struct Neighbours {
    bool inside;
    int64_t low;
    int64_t high;
    double low_share;
    double high_share;
    double slope;  // of the position after clamping: 1 within the image, else 0
};

DIOPI_HD inline Neighbours neighbours_of(double position, int64_t length) {
    const auto last = static_cast<double>(length - 1);
    Neighbours result{};
    result.inside = length > 0 && position >= -1 && position <= last + 1;
    if (!result.inside) return result;
    const double clamped = math::clamp(position, 0.0, last);
    result.low = static_cast<int64_t>(clamped);
    result.high = result.low + 1 < length ? result.low + 1 : result.low;
    result.high_share = clamped - static_cast<double>(result.low);
    result.low_share = 1 - result.high_share;
    result.slope = position >= 0 && position < last ? 1 : 0;
    return result;
}

// Calls f(y, x, share) for the four pixels around a point.
template <class F>
DIOPI_HD inline void for_each_neighbour(const ImagePoint& point, int64_t height, int64_t width, F&& f) {
    const Neighbours rows = neighbours_of(point.y, height);
    const Neighbours columns = neighbours_of(point.x, width);
    if (!rows.inside || !columns.inside) return;
    f(rows.low, columns.low, rows.low_share * columns.low_share);
    f(rows.low, columns.high, rows.low_share * columns.high_share);
    f(rows.high, columns.low, rows.high_share * columns.low_share);
    f(rows.high, columns.high, rows.high_share * columns.high_share);
}

// Calls f(y, x, along_y, along_x) with what the four pixels count in the derivatives by the point.
template <class F>
DIOPI_HD inline void for_each_slope(const ImagePoint& point, int64_t height, int64_t width, F&& f) {
    const Neighbours rows = neighbours_of(point.y, height);
    const Neighbours columns = neighbours_of(point.x, width);
    if (!rows.inside || !columns.inside) return;
    f(rows.low, columns.low, -rows.slope * columns.low_share, -columns.slope * rows.low_share);
    f(rows.low, columns.high, -rows.slope * columns.high_share, columns.slope * rows.low_share);
    f(rows.high, columns.low, rows.slope * columns.low_share, -columns.slope * rows.high_share);
    f(rows.high, columns.high, rows.slope * columns.high_share, columns.slope * rows.high_share);
}

// What a pixel counts in the value at a point, and in its derivatives.
struct PixelShare {
    double value;
    double along_y;
    double along_x;
};

// Calls f(y, x, PixelShare) for those of the four pixels around a point that lie in the image, which is zero outside.
template <class F>
DIOPI_HD inline void for_each_pixel_around(const ImagePoint& point, int64_t height, int64_t width, F&& f) {
    const bool inside =
        point.y > -1 && point.y < static_cast<double>(height) && point.x > -1 && point.x < static_cast<double>(width);
    if (!inside) return;
    const double top = math::floor(point.y), left = math::floor(point.x);
    for (int corner = 0; corner < 4; ++corner) {
        const int lower = corner / 2, righter = corner % 2;
        const int64_t y = static_cast<int64_t>(top) + lower, x = static_cast<int64_t>(left) + righter;
        if (y < 0 || y >= height || x < 0 || x >= width) continue;
        const double row_share = lower == 1 ? point.y - top : top + 1 - point.y;
        const double column_share = righter == 1 ? point.x - left : left + 1 - point.x;
        f(y, x, PixelShare{row_share * column_share, (2 * lower - 1) * column_share, (2 * righter - 1) * row_share});
    }
}

// The greatest of the values seen, and the number of the first of equals; NaN is greater than any number.
struct Greatest {
    double value = 0;
    int64_t index = -1;
    int64_t seen = 0;

    // True when the value is the greatest up to now.
    DIOPI_HD bool see(double next) {
        const bool greater = seen == 0 || next > value || (next != next && value == value);
        if (greater) {
            value = next;
            index = seen;
        }
        ++seen;
        return greater;
    }
};

}  // namespace diopi::kernels

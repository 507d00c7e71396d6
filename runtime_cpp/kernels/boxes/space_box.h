// SpaceBox: a box in space, turned around z, and the points in it.
#pragma once

#include "core/host_device.h"
#include "math/math.h"

namespace diopi::kernels {

// The centre x, y, the z of the bottom, the sizes, and the angle around z.
struct SpaceBox {
    const double* numbers;

    // The point along the sides of the box: from its centre, but along z from its bottom.
    DIOPI_HD void place(const double* point, double (&place)[3]) const {
        const double cos = math::cos(numbers[6]), sin = math::sin(numbers[6]);
        const double x = point[0] - numbers[0], y = point[1] - numbers[1];
        place[0] = x * cos + y * sin;
        place[1] = y * cos - x * sin;
        place[2] = point[2] - numbers[2];
    }

    DIOPI_HD bool holds(const double (&place)[3]) const {
        return math::abs(place[0]) < numbers[3] / 2 && math::abs(place[1]) < numbers[4] / 2 && place[2] >= 0 &&
               place[2] <= numbers[5];
    }

    DIOPI_HD bool holds_point(const double* point) const {
        double at[3];
        place(point, at);
        return holds(at);
    }
};

}  // namespace diopi::kernels

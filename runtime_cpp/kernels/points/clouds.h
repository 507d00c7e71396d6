// Point clouds: distances, and clouds that are stacked one below the other with a tensor of their counts.
#pragma once

#include "space/element.h"

namespace diopi::kernels {

struct Cloud {
    int64_t first;  // where its points begin
    int64_t count;
};

// The points of the cloud to which one of the stacked `group`s belongs; none for a group behind the last cloud.
DIOPI_HD inline Cloud cloud_of(const TensorView& groups, const TensorView& points, int64_t group) {
    int64_t first = 0;
    for (int64_t cloud = 0; cloud < groups.numel; ++cloud) {
        const auto count = number_at<int64_t>(points, cloud);
        group -= number_at<int64_t>(groups, cloud);
        if (group < 0) return {first, count};
        first += count;
    }
    return {first, 0};
}

// The squared distance of point i of `a` from point j of `b`, both [batch, points, coordinates].
template <class T>
DIOPI_HD inline ComputeType<T> squared_distance(const TensorView& a, int64_t i, const TensorView& b, int64_t j,
                                                int64_t batch) {
    using C = ComputeType<T>;
    C sum = 0;
    for (int64_t d = 0; d < a.sizes[2]; ++d) {
        const C step = cast<C>(element<T>(a, batch, i, d)) - cast<C>(element<T>(b, batch, j, d));
        sum += step * step;
    }
    return sum;
}

}  // namespace diopi::kernels

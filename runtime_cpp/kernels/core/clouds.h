// Point clouds stacked one below the other, with a tensor of their counts.
#ifndef DIOPI_KERNELS_CORE_CLOUDS_H_
#define DIOPI_KERNELS_CORE_CLOUDS_H_

#include "element.h"

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

}  // namespace diopi::kernels

#endif  // DIOPI_KERNELS_CORE_CLOUDS_H_

// Which points lie in which voxel: each voxel has a list of its points, in their order.
#pragma once

#include "core/workspace.h"
#include "space/element.h"

namespace diopi::kernels {

struct VoxelMembers {
    int64_t voxels;
    int64_t* first;  // for each voxel its first point, -1 where it has none
    int64_t* last;
    int64_t* counts;
    int64_t* next;  // for each point the next one of its voxel, -1 behind the last

    DIOPI_HD void clear() const {
        for (int64_t v = 0; v < voxels; ++v) {
            first[v] = -1;
            counts[v] = 0;
        }
    }

    DIOPI_HD void append(int64_t voxel, int64_t point) const {
        if (first[voxel] < 0) {
            first[voxel] = point;
        } else {
            next[last[voxel]] = point;
        }
        last[voxel] = point;
        next[point] = -1;
        ++counts[voxel];
    }
};

inline VoxelMembers voxel_members(Context ctx, int64_t voxels, int64_t points) {
    return {voxels, workspace_of<int64_t>(ctx, voxels), workspace_of<int64_t>(ctx, voxels),
            workspace_of<int64_t>(ctx, voxels), workspace_of<int64_t>(ctx, points)};
}

// Numbers the voxels that points lie in, by a table of their hashes.
struct NumberTask {
    TensorView coors;    // int32, [points, coordinates]
    TensorView numbers;  // int32, of each point; -1 for one outside, or in a voxel that there is no room for
    TensorView count;    // int64, of the voxels
    VoxelMembers members;
    int64_t* table;  // the number of a voxel, -1 where a place is free
    int64_t places;  // a power of two, greater than the number of points

    DIOPI_HD void operator()(int64_t) const {
        members.clear();
        for (int64_t place = 0; place < places; ++place) table[place] = -1;
        int64_t found = 0;
        for (int64_t i = 0; i < coors.sizes[0]; ++i) {
            int64_t number = -1;
            if (lies_inside(i)) {
                int64_t& entry = table[place_of(i)];
                if (entry < 0 && found < members.voxels) entry = found++;
                number = entry;
            }
            element<int32_t>(numbers, i) = static_cast<int32_t>(number);
            if (number >= 0) members.append(number, i);
        }
        *count.as<int64_t>() = found;
    }

    DIOPI_HD bool lies_inside(int64_t i) const {
        bool inside = true;
        for (int64_t d = 0; d < coors.sizes[1]; ++d) inside = inside && element<int32_t>(coors, i, d) >= 0;
        return inside;
    }

    // Where the voxel of a point stands in the table, or will.
    DIOPI_HD int64_t place_of(int64_t i) const {
        uint64_t hash = 0xCBF29CE484222325u;
        for (int64_t d = 0; d < coors.sizes[1]; ++d)
            hash = (hash ^ static_cast<uint64_t>(element<int32_t>(coors, i, d))) * 0x100000001B3u;
        int64_t place = static_cast<int64_t>((hash ^ hash >> 32) & static_cast<uint64_t>(places - 1));
        while (table[place] >= 0 && !same_voxel(i, members.first[table[place]])) place = (place + 1) & (places - 1);
        return place;
    }

    DIOPI_HD bool same_voxel(int64_t i, int64_t j) const {
        bool same = true;
        for (int64_t d = 0; d < coors.sizes[1]; ++d)
            same = same && element<int32_t>(coors, i, d) == element<int32_t>(coors, j, d);
        return same;
    }
};

inline NumberTask number_voxels(Context ctx, const TensorView& coors, const TensorView& numbers, int64_t most) {
    int64_t places = 2;
    while (places <= coors.sizes[0] * 2) places *= 2;
    const NumberTask task{coors,
                          numbers,
                          temporary(ctx, nullptr, 0, diopi_dtype_int64),
                          voxel_members(ctx, most, coors.sizes[0]),
                          workspace_of<int64_t>(ctx, places),
                          places};
    for_each(ctx, 1, task);
    return task;
}

// Lists the points of voxels whose numbers are known; one without such a number lies in none.
struct CollectTask {
    TensorView numbers;
    VoxelMembers members;

    DIOPI_HD void operator()(int64_t) const {
        members.clear();
        for (int64_t i = 0; i < numbers.sizes[0]; ++i) {
            const auto number = number_at<int64_t>(numbers, i);
            if (number >= 0 && number < members.voxels) members.append(number, i);
        }
    }
};

}  // namespace diopi::kernels

// Volumes: tensors of one to three spatial dimensions, all seen as [batch, channels, depth, rows, columns], so that one
// loop serves every rank. Neighbouring channels are worked on together, which is the order of NHWC memory.
#pragma once

#include <diopi/diopirt.h>

#include <cstdint>

#include "core/error.h"
#include "core/host_device.h"
#include "core/tensor.h"
#include "divider.h"
#include "runs.h"

namespace diopi::kernels {

constexpr int kAxes = 3;
constexpr int64_t kWidth = kRunLength == 1 ? 1 : 256;  // elements that one call keeps running values for

struct Voxel {
    int64_t image, z, y, x;
};

// Neighbouring elements, which one call works on side by side: channels of one position, or columns of one channel,
// line after line. A GPU's call works on one element.
struct Strip {
    Voxel first;
    int64_t channel, channels, columns, lines;

    DIOPI_HD int64_t width() const { return channels * columns; }
};

// A dimension that the tensor lacks has one position.
struct Volume {
    int64_t batch, channels, sizes[kAxes];
    int64_t image, channel, steps[kAxes];  // strides

    DIOPI_HD int64_t positions() const { return sizes[0] * sizes[1] * sizes[2]; }
    DIOPI_HD int64_t at(int64_t n, int64_t z, int64_t y, int64_t x) const {
        return n * image + z * steps[0] + y * steps[1] + x * steps[2];
    }
    DIOPI_HD int64_t at(const Voxel& voxel) const { return at(voxel.image, voxel.z, voxel.y, voxel.x); }
    // Where a line of a strip begins.
    DIOPI_HD int64_t at(const Strip& strip, int64_t z, int64_t y, int64_t x) const {
        return at(strip.first.image, z, y, x) + strip.channel * channel;
    }
    DIOPI_HD int64_t at(const Strip& strip, int64_t z, int64_t y) const { return at(strip, z, y, strip.first.x); }
    // From one element of a strip to the next.
    DIOPI_HD int64_t step(const Strip& strip) const { return strip.columns == 1 ? channel : steps[2]; }
    // Positions are one run of even steps.
    bool even() const { return steps[1] == steps[2] * sizes[2] && (sizes[0] == 1 || steps[0] == steps[1] * sizes[1]); }
    // Channels lie side by side, so that they are worked on together.
    bool channels_last() const { return channel == 1 && channels > 1; }
    // What an index names: positions are counted slice by slice and row by row.
    DIOPI_HD int64_t number(int64_t z, int64_t y, int64_t x) const { return (z * sizes[1] + y) * sizes[2] + x; }
    DIOPI_HD Voxel voxel(int64_t index) const {
        const int64_t line = index / sizes[2], slice = line / sizes[1];
        const int64_t n = sizes[0] == 1 ? slice : slice / sizes[0];
        return {n, slice - n * sizes[0], line - slice * sizes[1], index - line * sizes[2]};
    }
};

// The first of `rank` spatial dimensions among kAxes.
DIOPI_HD constexpr int first_axis(int rank) { return kAxes - rank; }

// `tensor` is [N, C, spatial...] or [C, spatial...] with `rank` spatial dimensions.
inline Volume volume_of(const TensorView& tensor, int rank, const char* name) {
    require(tensor.ndim == rank + 1 || tensor.ndim == rank + 2, "'%s' has %d dimensions, expected %d or %d", name,
            tensor.ndim, rank + 1, rank + 2);
    const int lead = tensor.ndim - rank;
    Volume volume{1, tensor.sizes[lead - 1], {1, 1, 1}, 0, tensor.strides[lead - 1], {0, 0, 0}};
    if (lead == 2) {
        volume.batch = tensor.sizes[0];
        volume.image = tensor.strides[0];
    }
    for (int d = 0; d < rank; ++d) {
        volume.sizes[first_axis(rank) + d] = tensor.sizes[lead + d];
        volume.steps[first_axis(rank) + d] = tensor.strides[lead + d];
    }
    return volume;
}

inline void require_same_channels(const Volume& a, const Volume& b) {
    require(a.batch == b.batch && a.channels == b.channels, "the numbers of images and channels change");
}

// The value for `axis` of a list with one for each of `rank` dimensions, or one for all; an empty list stands for
// `otherwise`.
inline int64_t value_for(const Sizes& list, int axis, int rank, int64_t otherwise, const char* name) {
    require(list.len <= 1 || list.len == rank, "'%s' has %lld values, expected one or %d", name, list.len, rank);
    if (list.len == 0) return otherwise;
    return list.data[list.len == 1 ? 0 : axis - first_axis(rank)];
}

// What sums start from: -0 + x is x, and for a few zeros GCC would write an instruction that is slow to begin.
template <class A>
constexpr A kNothing = static_cast<A>(-0.0);

// Calls f(voxel, first, width) on the device for each position and each block of its channels.
template <class F>
void for_each_block(diopiStreamHandle_t stream, const Volume& volume, F f) {
    const int64_t blocks = (volume.channels + kWidth - 1) / kWidth, lines = volume.sizes[0] * volume.sizes[1];
    for_runs(
        stream, volume.batch * lines, volume.sizes[2] * blocks, DIOPI_LAMBDA(int64_t line, int64_t begin, int64_t end) {
            Voxel voxel = volume.voxel(line * volume.sizes[2]);
            for (int64_t i = begin; i < end; ++i) {
                voxel.x = blocks == 1 ? i : i / blocks;
                const int64_t first = (i - voxel.x * blocks) * kWidth;
                f(voxel, first, volume.channels - first < kWidth ? volume.channels - first : kWidth);
            }
        });
}

// Calls f(strip) on the device for all elements of the volume, with no more than `columns` columns in a strip, and
// channels where they are neighbours.
template <class F>
void for_each_strip(diopiStreamHandle_t stream, const Volume& volume, bool channels, int64_t columns, F f) {
    const int64_t lanes = volume.sizes[2], blocks = (lanes + columns - 1) / columns;
    const int64_t lines = volume.sizes[0] * volume.sizes[1], planes = volume.batch * volume.channels;
    if (planes * lines * volume.sizes[2] == 0) return;
    if (kRunLength == 1) {
        const Divider by_channels(volume.channels), by_columns(volume.sizes[2]), by_rows(volume.sizes[1]);
        const Divider by_slices(volume.sizes[0]);
        for_each_index(
            stream, planes * lines * volume.sizes[2], DIOPI_LAMBDA(int64_t i) {
                int64_t rest = i;
                const int64_t inner = channels ? by_channels.split(rest) : 0;
                const int64_t x = by_columns.split(rest), y = by_rows.split(rest), z = by_slices.split(rest);
                const int64_t channel = channels ? inner : by_channels.split(rest);
                f(Strip{{rest, z, y, x}, channel, 1, 1, 1});
            });
    } else if (channels) {
        for_each_block(
            stream, volume,
            DIOPI_LAMBDA(const Voxel& voxel, int64_t first, int64_t width) { f(Strip{voxel, first, width, 1, 1}); });
    } else {
        for_runs(
            stream, planes * blocks, lines, DIOPI_LAMBDA(int64_t row, int64_t begin, int64_t end) {
                const int64_t plane = blocks == 1 ? row : row / blocks, first = (row - plane * blocks) * columns;
                const int64_t image = plane / volume.channels, z = begin == 0 ? 0 : begin / volume.sizes[1];
                f(Strip{{image, z, begin - z * volume.sizes[1], first},
                        plane - image * volume.channels,
                        1,
                        lanes - first < columns ? lanes - first : columns,
                        end - begin});
            });
    }
}

// f(lane, offset) for the lanes [begin, end) of a strip or a block; neighbours get a loop of their own, which vectorizes.
template <class F>
DIOPI_HD DIOPI_FLATTEN inline void for_each_lane(int64_t begin, int64_t end, int64_t step, F&& f) {
    if (step == 1) {
        for (int64_t c = begin; c < end; ++c) f(c, c);
    } else {
        for (int64_t c = begin; c < end; ++c) f(c, c * step);
    }
}

// The positions begin, begin + step, ... before end.
struct Span {
    int64_t begin, end;
    int64_t step = 1;
};

// f(z, y) for the lines of a strip of the volume.
template <class F>
DIOPI_HD inline void for_each_line(const Volume& volume, const Strip& strip, F&& f) {
    int64_t z = strip.first.z, y = strip.first.y;
    for (int64_t line = 0; line < strip.lines; ++line) {
        f(z, y);
        if (++y == volume.sizes[1]) {
            y = 0;
            ++z;
        }
    }
}

template <class F>
DIOPI_HD inline void for_each_line(const Span& depth, const Span& rows, F&& f) {
    for (int64_t z = depth.begin; z < depth.end; z += depth.step) {
        for (int64_t y = rows.begin; y < rows.end; y += rows.step) f(z, y);
    }
}

}  // namespace diopi::kernels

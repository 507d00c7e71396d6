// Planes spread out so that every tap of a window sees a run of memory: the elements that one tap sees of two
// neighbouring windows lie side by side, whatever the stride, and what it sees outside of the plane is zero.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/host_device.h"

namespace diopi::kernels {

// One axis. Source position x goes to index (x + lead) / phases of phase (x + lead) % phases; a phase that no tap sees
// is left out.
struct SpreadAxis {
    int64_t size;    // of the source
    int64_t lead;    // zeros before it
    int64_t step;    // e.g. the stride of the windows
    int64_t phases;  // that are kept
    int64_t length;  // indices of a phase

    // Where `position` begins to be in the phase, and how many of its elements are kept.
    DIOPI_HD int64_t first_index(int64_t phase) const { return lead <= phase ? 0 : (lead - phase + step - 1) / step; }
    DIOPI_HD int64_t position(int64_t phase, int64_t index) const { return index * step + phase - lead; }
    DIOPI_HD int64_t end_index(int64_t phase) const {
        const int64_t last = size + lead - 1 - phase;
        const int64_t end = last < 0 ? 0 : last / step + 1;
        return end < length ? end : length;
    }

    // The zeros behind the elements of one line that are those before the elements of the next.
    int64_t shared() const {
        const int64_t behind = length - std::min(length, (size + lead - 1) / step + 1);
        return std::min(lead / step, behind);
    }
};

// Where the elements of one plane lie: a line follows the other after `pitch` elements.
struct SpreadLayout {
    SpreadAxis rows, columns;
    int64_t pitch;       // of the lines
    int64_t phase_size;  // elements of one phase of rows and one of columns, and zeros behind them
    int64_t plane_size;  // of all phases

    // `reach`: how many elements behind the last one are read.
    SpreadLayout(const SpreadAxis& rows_, const SpreadAxis& columns_, int64_t reach)
        : rows(rows_),
          columns(columns_),
          pitch(columns.length - columns.shared()) {
        constexpr int64_t kLine = 16;  // elements: phases begin at the same place of a cache line
        phase_size = (rows.length * pitch + columns.shared() + reach + kLine - 1) / kLine * kLine;
        plane_size = rows.phases * columns.phases * phase_size;
    }

    // How far the tap that sees rows and columns `row` and `column` behind the first ones is from the first.
    int64_t shift(int64_t row, int64_t column) const {
        const int64_t phase = row % rows.step * columns.phases + column % columns.step;
        return phase * phase_size + row / rows.step * pitch + column / columns.step;
    }
};

// Spreads one plane per index: dense planes to `planes` of the layout, followed by `empty` ones of zeros for each
// `filled` of them.
template <class T>
struct SpreadTask {
    SpreadLayout layout;
    const T* source;
    T* target;
    int64_t filled, empty;

    DIOPI_HD void operator()(int64_t plane) const {
        const int64_t group = plane / (filled + empty), member = plane - group * (filled + empty);
        T* to = target + plane * layout.plane_size;
        for (int64_t i = 0; i < layout.plane_size; ++i) to[i] = T(0);
        if (member >= filled) return;
        const SpreadAxis rows = layout.rows, columns = layout.columns;
        const T* from = source + (group * filled + member) * rows.size * columns.size;
        for (int64_t i = 0; i < rows.phases; ++i) {
            for (int64_t j = 0; j < columns.phases; ++j, to += layout.phase_size) spread_phase(to, from, i, j);
        }
    }

    DIOPI_HD void spread_phase(T* to, const T* from, int64_t row_phase, int64_t column_phase) const {
        const SpreadAxis rows = layout.rows, columns = layout.columns;
        const int64_t begin = columns.first_index(column_phase), count = columns.end_index(column_phase) - begin;
        const int64_t top = rows.first_index(row_phase), bottom = rows.end_index(row_phase), step = columns.step;
        from += rows.position(row_phase, top) * columns.size + columns.position(column_phase, begin);
        to += top * layout.pitch + begin;
        for (int64_t row = top; row < bottom; ++row, to += layout.pitch, from += rows.step * columns.size) {
            if (step == 1) {
                for (int64_t x = 0; x < count; ++x) to[x] = from[x];
            } else if (step == 2) {
                for (int64_t x = 0; x < count; ++x) to[x] = from[x * 2];
            } else {
                for (int64_t x = 0; x < count; ++x) to[x] = from[x * step];
            }
        }
    }
};

}  // namespace diopi::kernels

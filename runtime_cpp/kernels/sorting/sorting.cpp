// Lines sorted along one dimension: on GPUs all of them together, on hosts one after the other by each thread.
#include "sorting.h"

#include "core/view.h"
#include "core/workspace.h"
#include "space/bounds.h"
#include "space/index.h"

namespace diopi::kernels {
namespace {

// The lines along the sorted dimension, with one stride along them for each operand.
struct Lines {
    Space<3> starts;  // values, indices, input
    int64_t length;   // of an input line
    int64_t kept;     // of a result line
    int64_t step[3];
};

// Where the sorted elements came from.
struct Places {
    void* data;   // null where nobody asks
    bool narrow;  // int32 instead of int64

    DIOPI_HD void store(int64_t at, int64_t place) const {
        if (narrow) {
            static_cast<int32_t*>(data)[at] = static_cast<int32_t>(place);
        } else {
            static_cast<int64_t*>(data)[at] = place;
        }
    }
};

// `indices`, an undefined view where nobody asks for them. Fails where they are neither int64 nor int32.
Places places_of(const TensorView& indices) {
    if (!indices) return {nullptr, false};
    require_index_dtype(indices);
    return {indices.data, indices.dtype == diopi_dtype_int32};
}

template <class T>
struct Sort {
    Lines lines;
    T* values;
    Places places;
    const T* input;
    Order<T> order;

    DIOPI_HD Entry<T> entry(const Offsets<3>& at, int64_t j) const { return {input[at[2] + j * lines.step[2]], j}; }

    // The `kept` first of the elements [begin, end) of a line.
    DIOPI_HD void keep(const Offsets<3>& at, int64_t begin, int64_t end, Entry<T>* list, int64_t kept) const {
        keep_first([&](int64_t j) { return entry(at, begin + j).value; }, end - begin, list, kept, order);
        for (int64_t j = 0; j < kept; ++j) list[j].place += begin;
    }

    DIOPI_HD void store(const Offsets<3>& at, int64_t j, const Entry<T>& entry) const {
        if (values != nullptr) values[at[0] + j * lines.step[0]] = entry.value;
        if (places.data != nullptr) places.store(at[1] + j * lines.step[1], entry.place);
    }
};

// So many of a line are kept by insertion.
constexpr int64_t kShortList = Team::kAlone ? 32 : 8;

template <class T>
struct SortTask {
    Sort<T> sort;
    bool selects;
    int64_t room, rooms;  // few rooms of a line each, which stay in the cache
    Entry<T>* entries;
    Entry<T>* spare;

    DIOPI_HD void operator()(int64_t own) const {
        const Lines& lines = sort.lines;
        for (int64_t line = own; line < lines.starts.numel; line += rooms) {
            const Offsets<3> at = lines.starts.offsets(line);
            Entry<T>* sorted = entries + own * room;
            if (selects) {
                sort.keep(at, 0, lines.length, sorted, lines.kept);
            } else {
                for (int64_t j = 0; j < lines.length; ++j) sorted[j] = sort.entry(at, j);
                sorted = merge_sort(sorted, spare + own * room, lines.length, sort.order);
            }
            for (int64_t j = 0; j < lines.kept; ++j) sort.store(at, j, sorted[j]);
        }
    }
};

template <class T>
void sort_by_line(Context ctx, const Sort<T>& sort, bool selects) {
    const int64_t count = sort.lines.starts.numel, rooms = count < 64 ? count : 64;
    const int64_t room = selects ? sort.lines.kept : sort.lines.length;
    auto* entries = workspace_of<Entry<T>>(ctx, rooms * room);
    auto* spare = selects ? nullptr : workspace_of<Entry<T>>(ctx, rooms * room);
    for_each(ctx, rooms, SortTask<T>{sort, selects, room, rooms, entries, spare});
}

// A line falls into parts, of which each leaves the elements that it may have in the result.
template <class T>
struct KeepTask {
    Sort<T> sort;
    int64_t parts, part, kept;
    Entry<T>* entries;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t line = i / parts, number = i - line * parts;
        const int64_t end = number + 1 < parts ? (number + 1) * part : sort.lines.length;
        sort.keep(sort.lines.starts.offsets(line), number * part, end, entries + i * kept, kept);
    }
};

// What may be in the result: all of the input, or what was kept of it.
template <class T>
struct Candidates {
    Sort<T> sort;
    const Entry<T>* kept;  // [line, length], or null
    int64_t length;

    DIOPI_HD Entry<T> entry(int64_t i) const {
        const int64_t line = i / length;
        return kept != nullptr ? kept[i] : sort.entry(sort.lines.starts.offsets(line), i - line * length);
    }
    DIOPI_HD T operator()(int64_t i) const { return entry(i).value; }
};

template <class T>
struct StoreSortedTask {
    Candidates<T> candidates;
    SortedPlaces sorted;  // none where they are in order already

    DIOPI_HD void operator()(int64_t i) const {
        const Sort<T>& sort = candidates.sort;
        const int64_t line = i / sort.lines.kept, j = i - line * sort.lines.kept, at = line * candidates.length + j;
        sort.store(sort.lines.starts.offsets(line), j, candidates.entry(sorted.first == nullptr ? at : sorted[at]));
    }
};

template <class T>
void sort_together(Context ctx, const Sort<T>& sort, bool selects) {
    constexpr int64_t many_lines = 1 << 14;  // so many keep a chip busy with a thread each
    const int64_t count = sort.lines.starts.numel, length = sort.lines.length, kept = sort.lines.kept;
    const int64_t few = kept < 4 ? 64 : 16 * kept;  // elements of a part, where lines are few
    const bool whole = selects && (count >= many_lines || length < 2 * few);
    Candidates<T> candidates{sort, nullptr, length};
    if (selects) {
        const int64_t part = whole ? length : few, parts = length / part;
        auto* const entries = workspace_of<Entry<T>>(ctx, count * parts * kept);
        for_each(ctx, count * parts, KeepTask<T>{sort, parts, part, kept, entries});
        candidates = {sort, entries, parts * kept};
    }
    const SortedPlaces sorted = whole ? SortedPlaces{nullptr, 0}
                                      : sorted_places(ctx, count, candidates.length, candidates, sort.order.descending);
    for_each(ctx, count * kept, StoreSortedTask<T>{candidates, sorted});
}

}  // namespace

void sort_along(Context ctx, const TensorView& values, const TensorView& indices, const TensorView& tensor, int64_t dim,
                int64_t kept, bool descending) {
    const TensorView input = at_least_1d(tensor);
    const int at = normalized_dim(dim, input.ndim);
    require(kept >= 0 && kept <= input.sizes[at], "%lld elements cannot be taken from dimension %d of size %lld",
            static_cast<long long>(kept), at, static_cast<long long>(input.sizes[at]));
    TensorView result = input;
    result.sizes[at] = kept;
    recounted(result);
    TensorView outs[] = {result, result};
    if (values) outs[0] = at_least_1d(values);
    if (indices) outs[1] = at_least_1d(indices);
    for (const TensorView& out : outs)
        require(out.same_sizes(result),
                "the shape of a sorted tensor is that of its input, cut off along the dimension");
    if (values && values.dtype != input.dtype) fail_dtype(values.dtype);
    const Places places = places_of(indices);
    const TensorView starts[] = {without_dim(outs[0], at), without_dim(outs[1], at), without_dim(input, at)};
    const Lines lines{broadcast_space<3>(starts[2], starts),
                      input.sizes[at],
                      kept,
                      {outs[0].strides[at], outs[1].strides[at], input.strides[at]}};
    if (result.numel == 0) return;
    const bool selects = kept <= kShortList && kept * 8 <= lines.length;
    dispatch<Any>(input.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        const Sort<T> sort{lines, values ? values.as<T>() : nullptr, places, input.as<T>(), {descending}};
        if constexpr (Team::kAlone) {
            sort_by_line(ctx, sort, selects);
        } else {
            sort_together(ctx, sort, selects);
        }
    });
}

}  // namespace diopi::kernels

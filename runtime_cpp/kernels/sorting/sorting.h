// The order of values, and ways to bring lines of them into it: by one thread for each line or by all threads together.
// NaN is the greatest value, as in torch.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/host_device.h"
#include "core/team.h"
#include "core/tensor.h"
#include "core/workspace.h"
#include "sort_key.h"

namespace diopi::kernels {

template <class T>
DIOPI_HD inline bool less(T a, T b) {
    return cast<ComputeType<T>>(a) < cast<ComputeType<T>>(b) || (is_nan(b) && !is_nan(a));
}

// A value with the place that it came from.
template <class T>
struct Entry {
    T value;
    int64_t place;
};

template <class T>
struct Order {
    bool descending;
    // True when `later`, which stood behind, must come before `earlier`: equal values stay in place.
    DIOPI_HD bool overtakes(const Entry<T>& later, const Entry<T>& earlier) const {
        return descending ? less(earlier.value, later.value) : less(later.value, earlier.value);
    }
};

constexpr int64_t kInsertionRun = 16;

template <class E, class Order>
DIOPI_HD inline void insertion_sort(E* entries, int64_t count, const Order& order) {
    for (int64_t i = 1; i < count; ++i) {
        const E moved = entries[i];
        int64_t j = i;
        for (; j > 0 && order.overtakes(moved, entries[j - 1]); --j) entries[j] = entries[j - 1];
        entries[j] = moved;
    }
}

template <class E, class Order>
DIOPI_HD inline void merge(const E* from, int64_t middle, int64_t count, E* to, const Order& order) {
    int64_t left = 0, right = middle;
    for (int64_t i = 0; i < count; ++i) {
        const bool takes_right = left == middle || (right < count && order.overtakes(from[right], from[left]));
        to[i] = takes_right ? from[right++] : from[left++];
    }
}

// Sorts `count` entries between two buffers; gives the one that holds the result. `order` has overtakes(later, earlier).
template <class E, class Order>
DIOPI_HD inline E* merge_sort(E* entries, E* spare, int64_t count, const Order& order) {
    for (int64_t i = 0; i < count; i += kInsertionRun)
        insertion_sort(entries + i, count - i < kInsertionRun ? count - i : kInsertionRun, order);
    for (int64_t run = kInsertionRun; run < count; run *= 2) {
        for (int64_t i = 0; i < count; i += 2 * run) {
            const int64_t length = count - i < 2 * run ? count - i : 2 * run;
            merge(entries + i, length < run ? length : run, length, spare + i, order);
        }
        E* const sorted = spare;
        spare = entries;
        entries = sorted;
    }
    return entries;
}

// The first number of [low, high) for which before() does not hold, as it does for all up to there.
template <class Before>
DIOPI_HD inline int64_t partition_point(int64_t low, int64_t high, const Before& before) {
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const bool is_before = before(middle);
        (is_before ? low : high) = is_before ? middle + 1 : middle;
    }
    return low;
}

template <class E, class Order>
struct SortLineTask {
    E* entries;
    E* spare;
    int64_t length;
    Order order;
    DIOPI_HD void operator()(int64_t line) const {
        merge_sort(entries + line * length, spare + line * length, length, order);
    }
};

template <class E, class Order>
struct SortRunTask {
    E* entries;
    int64_t length, runs;  // of a line
    Order order;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t line = i / runs, first = (i - line * runs) * kInsertionRun, left = length - first;
        insertion_sort(entries + line * length + first, left < kInsertionRun ? left : kInsertionRun, order);
    }
};

// Two neighbouring runs become one: an entry moves behind those of the other run that come before it.
template <class E, class Order>
struct MergeByRankTask {
    const E* from;
    E* to;
    int64_t length, run;
    Order order;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t place = i % length, pair = place - place % (2 * run);
        const int64_t middle = smaller(pair + run), end = smaller(pair + 2 * run);
        const bool left = place < middle;
        const E own = from[i];
        const E* const line = from + (i - place);
        const int64_t others = partition_point(left ? middle : pair, left ? end : middle, [&](int64_t other) {
            return left ? order.overtakes(line[other], own) : !order.overtakes(own, line[other]);
        });
        to[i + others - middle] = own;
    }

    DIOPI_HD int64_t smaller(int64_t place) const { return place < length ? place : length; }
};

// Sorts each of `lines` lines, which lie one behind the other, as merge_sort does; gives the buffer with the result.
template <class E, class Order>
E* sort_lines(Context ctx, E* entries, E* spare, int64_t lines, int64_t length, const Order& order) {
    if constexpr (Team::kAlone) {
        for_each(ctx, lines, SortLineTask<E, Order>{entries, spare, length, order});
    } else {
        const int64_t runs = (length + kInsertionRun - 1) / kInsertionRun;
        for_each(ctx, lines * runs, SortRunTask<E, Order>{entries, length, runs, order});
    }
    for (int64_t run = kInsertionRun; run < length; run *= 2) {
        if constexpr (!Team::kAlone)
            for_each(ctx, lines * length, MergeByRankTask<E, Order>{entries, spare, length, run, order});
        E* const sorted = spare;
        spare = entries;
        entries = sorted;
    }
    return entries;
}

// Where the sorted elements stood.
struct SortedPlaces {
    const int64_t* first;
    int64_t step;
    DIOPI_HD int64_t operator[](int64_t i) const { return first[i * step]; }
};

template <class Values, class Key>
struct ListKeysTask {
    Values values;
    bool descending;
    Key* keys;

    DIOPI_HD void operator()(int64_t i) const {
        const auto key = sort_key(values(i), descending);
        if constexpr (std::is_integral_v<Key>) {
            keys[i] = key;
        } else {
            keys[i] = {key, i};
        }
    }
};

// The numbers of a list as the values to sort.
struct Indices {
    TensorView list;
    DIOPI_HD int64_t operator()(int64_t i) const { return load_as<int64_t>(list, i * list.strides[0]); }
};

// Sorts values(i) for i in [0, lines * length) within each line, and gives the places i in their order; equal ones stay
// in order. Values that are not negative may say how many `bits` they have.
template <class Values>
SortedPlaces sorted_places(Context ctx, int64_t lines, int64_t length, const Values& values, bool descending = false,
                           int bits = 64) {
    const int64_t count = lines * length;
#if defined(DIOPI_LAUNCHER_HAS_SORTS)
    if (length > kInsertionRun) {
        using Key = decltype(sort_key(values(0), false));
        constexpr int bytes = sizeof(Key);
        auto* const keys = workspace_of<Key>(ctx, count);
        auto* const places = workspace_of<int64_t>(ctx, count);
        for_each(ctx, count, ListKeysTask<Values, Key>{values, descending, keys});
        const launch::LibrarySort sort{bytes, bits < 8 * bytes ? bits : 8 * bytes, lines, length, keys};
        check(launch::sort_places(stream_of(ctx), sort, places, [&](int64_t size) { return workspace(ctx, size); }),
              "the sort of the vendor's library failed");
        return {places, 1};
    }
#endif
    static_cast<void>(bits);
    using Keyed = Entry<uint64_t>;
    auto* const entries = workspace_of<Keyed>(ctx, count);
    auto* const spare = workspace_of<Keyed>(ctx, count);
    for_each(ctx, count, ListKeysTask<Values, Keyed>{values, descending, entries});
    return {&sort_lines(ctx, entries, spare, lines, length, Order<uint64_t>{false})->place,
            sizeof(Keyed) / sizeof(int64_t)};
}

// The `kept` first of `count` values, in order, by insertion into a short list: for a small `kept`.
template <class T, class Value>
DIOPI_HD inline void keep_first(Value&& value_at, int64_t count, Entry<T>* list, int64_t kept, const Order<T>& order) {
    int64_t size = 0;
    for (int64_t i = 0; i < count; ++i) {
        const Entry<T> entry{value_at(i), i};
        if (size == kept && !order.overtakes(entry, list[size - 1])) continue;
        int64_t j = size < kept ? size++ : kept - 1;
        for (; j > 0 && order.overtakes(entry, list[j - 1]); --j) list[j] = list[j - 1];
        list[j] = entry;
    }
}

// The `kept` first elements of each line along `dim`, in order; equal ones stay in place. `values` and `indices` may
// each be undefined, and have `kept` elements along `dim`.
void sort_along(Context ctx, const TensorView& values, const TensorView& indices, const TensorView& tensor, int64_t dim,
                int64_t kept, bool descending);

}  // namespace diopi::kernels

// The order of values, and two ways to bring a line of them into it. NaN is the greatest value, as in torch.
#ifndef DIOPI_KERNELS_CORE_SORTING_H_
#define DIOPI_KERNELS_CORE_SORTING_H_

#include <cstdint>

#include "dtype.h"
#include "host_device.h"

namespace diopi::kernels {

template <class T>
DIOPI_HD inline bool is_nan(T value) {
    if constexpr (is_float<T>) {
        const auto number = cast<ComputeType<T>>(value);
        return number != number;
    } else {
        static_cast<void>(value);
        return false;
    }
}

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

}  // namespace diopi::kernels

#endif  // DIOPI_KERNELS_CORE_SORTING_H_

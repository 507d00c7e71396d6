// Orders of memory: whether a tensor lies in one, and the strides that it gives a new tensor.
#include "layout.h"

#include <algorithm>
#include <array>

namespace diopi::adaptor {

namespace {

int64_t extent(int64_t size) noexcept { return std::max<int64_t>(size, 1); }

}  // namespace

bool lies_in(Order order, const int64_t* sizes, const int64_t* strides, int64_t rank) noexcept {
    return order == Order::any || (contract::orders_of(sizes, strides, rank) & suiting(order)) != 0;
}

void strides_in(Order order, const int64_t* sizes, int64_t rank, int64_t* strides) noexcept {
    int64_t next = 1;
    const auto place = [&](int64_t d) {
        strides[d] = next;
        next *= extent(sizes[d]);
    };
    if (!is_last(order) || rank < 3) {
        for (int64_t d = rank - 1; d >= 0; --d) place(d);
        return;
    }
    place(1);
    for (int64_t d = rank - 1; d >= 2; --d) place(d);
    place(0);
}

bool is_dense(const int64_t* sizes, const int64_t* strides, int64_t rank) noexcept {
    std::array<int64_t, kMaxRank> dims{};
    int64_t count = 0;
    for (int64_t d = 0; d < rank; ++d) {
        if (sizes[d] == 0) return false;
        if (sizes[d] != 1) dims[count++] = d;
    }
    std::sort(dims.begin(), dims.begin() + count, [&](int64_t a, int64_t b) { return strides[a] < strides[b]; });
    int64_t expected = 1;
    for (int64_t i = 0; i < count; ++i) {
        if (strides[dims[i]] != expected) return false;
        expected *= sizes[dims[i]];
    }
    return true;
}

}  // namespace diopi::adaptor

// Strides for temporaries: by a wanted order, or like the tensor that they stand for.
#include "layout.h"

#include <algorithm>
#include <array>

namespace diopi::adaptor {

namespace {

int64_t extent(int64_t size) noexcept { return std::max<int64_t>(size, 1); }

}  // namespace

void strides_in(Order order, const diopiSize_t& sizes, int64_t* strides) noexcept {
    const bool last = (order == Order::channels_last || order == Order::prefer_last) && sizes.len >= 3;
    int64_t next = 1;
    const auto place = [&](int64_t d) {
        strides[d] = next;
        next *= extent(sizes.data[d]);
    };
    if (!last) {
        for (int64_t d = sizes.len - 1; d >= 0; --d) place(d);
        return;
    }
    place(1);
    for (int64_t d = sizes.len - 1; d >= 2; --d) place(d);
    place(0);
}

bool is_dense(const diopiSize_t& sizes, const diopiSize_t& strides) noexcept {
    std::array<int64_t, kMaxRank> dims{};
    int64_t count = 0;
    for (int64_t d = 0; d < sizes.len; ++d) {
        if (sizes.data[d] == 0) return false;
        if (sizes.data[d] != 1) dims[count++] = d;
    }
    std::sort(dims.begin(), dims.begin() + count,
              [&](int64_t a, int64_t b) { return strides.data[a] < strides.data[b]; });
    int64_t expected = 1;
    for (int64_t i = 0; i < count; ++i) {
        if (strides.data[dims[i]] != expected) return false;
        expected *= sizes.data[dims[i]];
    }
    return true;
}

}  // namespace diopi::adaptor

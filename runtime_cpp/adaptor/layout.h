// How the elements of a tensor lie in memory: tests of an order, and the strides that an order gives.
#ifndef DIOPI_ADAPTOR_LAYOUT_H_
#define DIOPI_ADAPTOR_LAYOUT_H_

#include <diopi/diopirt.h>

#include <cstdint>

namespace diopi::adaptor {

// More dimensions than any operator takes; strides of temporaries stand on the stack.
constexpr int64_t kMaxRank = 32;

// Memory orders of tensors of one rank. Shapes stay logical, so an order speaks of strides alone.
enum class Order : uint8_t {
    any,
    channels_first,     // NCL, NCHW, NCDHW: contiguous
    channels_last,      // NLC, NHWC, NDHWC: contiguous with dimension 1 innermost
    prefer_first,       // both are taken; others become channels_first
    prefer_last,        // both are taken; others become channels_last
};

// Whether the elements lie row after row. A dimension of size 1 has no say, and an empty tensor lies in every order.
inline bool is_contiguous(const diopiSize_t& sizes, const diopiSize_t& strides) noexcept {
    int64_t expected = 1;
    bool dense = true;
    for (int64_t d = sizes.len - 1; d >= 0; --d) {
        if (sizes.data[d] == 0) return true;
        if (sizes.data[d] == 1) continue;
        dense = dense && strides.data[d] == expected;
        expected *= sizes.data[d];
    }
    return dense;
}

// Whether the elements lie with dimension 1 innermost, the batch outermost; the rank is 3 or more.
inline bool is_channels_last(const diopiSize_t& sizes, const diopiSize_t& strides) noexcept {
    int64_t expected = 1;
    bool dense = true;
    const auto visit = [&](int64_t d) {
        if (sizes.data[d] == 1) return;
        dense = dense && strides.data[d] == expected;
        expected *= sizes.data[d];
    };
    visit(1);
    for (int64_t d = sizes.len - 1; d >= 2; --d) visit(d);
    visit(0);
    return dense || expected == 0;
}

// Whether a tensor can go to a function that takes `order`.
inline bool lies_in(Order order, const diopiSize_t& sizes, const diopiSize_t& strides) noexcept {
    switch (order) {
        case Order::any: return true;
        case Order::channels_first: return is_contiguous(sizes, strides);
        case Order::channels_last: return is_channels_last(sizes, strides);
        case Order::prefer_first:
        case Order::prefer_last: return is_contiguous(sizes, strides) || is_channels_last(sizes, strides);
    }
    return true;
}

// Strides of a new tensor of `sizes` in `order`, into `strides`, which has room for kMaxRank.
void strides_in(Order order, const diopiSize_t& sizes, int64_t* strides) noexcept;

// Whether each element has a place of its own and none lies between them, so that `strides` suit a copy.
bool is_dense(const diopiSize_t& sizes, const diopiSize_t& strides) noexcept;

}  // namespace diopi::adaptor

#endif  // DIOPI_ADAPTOR_LAYOUT_H_

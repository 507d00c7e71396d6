// How the elements of a tensor lie in memory: tests of an order, and the strides that an order gives.
#pragma once

#include <cstdint>

#include "../contract/memory_order.h"

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

// The orders of a description that suit who takes `order`; all of them where any does.
constexpr uint32_t suiting(Order order) noexcept {
    switch (order) {
        case Order::any: return ~0u;
        case Order::channels_first: return diopi_order_contiguous;
        case Order::channels_last: return diopi_order_channels_last;
        case Order::prefer_first:
        case Order::prefer_last: break;
    }
    return diopi_order_contiguous | diopi_order_channels_last;
}

constexpr bool is_last(Order order) noexcept { return order == Order::channels_last || order == Order::prefer_last; }

// Whether a tensor can go to a function that takes `order`.
bool lies_in(Order order, const int64_t* sizes, const int64_t* strides, int64_t rank) noexcept;

// Strides of a new tensor of `sizes` in `order`, into `strides`; both have `rank` elements.
void strides_in(Order order, const int64_t* sizes, int64_t rank, int64_t* strides) noexcept;

// Whether each element has a place of its own and none lies between them, so that `strides` suit a copy.
bool is_dense(const int64_t* sizes, const int64_t* strides, int64_t rank) noexcept;

}  // namespace diopi::adaptor

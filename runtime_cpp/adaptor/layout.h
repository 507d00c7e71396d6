// How the elements of a tensor lie in memory: tests of an order, and the strides that an order gives.
#ifndef DIOPI_ADAPTOR_LAYOUT_H_
#define DIOPI_ADAPTOR_LAYOUT_H_

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

constexpr bool is_last(Order order) noexcept { return order == Order::channels_last || order == Order::prefer_last; }

// Whether the elements lie row after row. Dimensions of size 1 are ignored; an empty tensor matches every order.
bool is_contiguous(const int64_t* sizes, const int64_t* strides, int64_t rank) noexcept;

// Whether the elements lie with dimension 1 innermost, the batch outermost; the rank is 3 or more.
bool is_channels_last(const int64_t* sizes, const int64_t* strides, int64_t rank) noexcept;

// Whether a tensor can go to a function that takes `order`.
bool lies_in(Order order, const int64_t* sizes, const int64_t* strides, int64_t rank) noexcept;

// How dimensions `Last` down to `First` fail to lie one in another around an innermost block of `block` elements: 0 if
// they do not fail. `block` grows by their sizes.
template <int64_t First, int64_t Last>
[[gnu::always_inline]] inline int64_t gaps(const int64_t* sizes, const int64_t* strides, int64_t& block) noexcept {
    const int64_t gap = strides[Last] ^ block;
    block *= sizes[Last];
    if constexpr (Last > First) return gap | gaps<First, Last - 1>(sizes, strides, block);
    return gap;
}

// Whether every stride is what `order` gives: the only test that most tensors need, so it has no branches. Others may lie
// in the order all the same, by their sizes of 0 and 1.
template <int64_t Rank>
[[gnu::always_inline]] inline bool has_strides_of(Order order, const int64_t* sizes, const int64_t* strides) noexcept {
    int64_t block = 1;
    if (!is_last(order)) return gaps<0, Rank - 1>(sizes, strides, block) == 0;
    const int64_t inner = gaps<1, 1>(sizes, strides, block);
    const int64_t outer = gaps<2, Rank - 1>(sizes, strides, block);
    return (inner | outer | (strides[0] ^ block)) == 0;
}

// Strides of a new tensor of `sizes` in `order`, into `strides`; both have `rank` elements.
void strides_in(Order order, const int64_t* sizes, int64_t rank, int64_t* strides) noexcept;

// Whether each element has a place of its own and none lies between them, so that `strides` suit a copy.
bool is_dense(const int64_t* sizes, const int64_t* strides, int64_t rank) noexcept;

}  // namespace diopi::adaptor

#endif  // DIOPI_ADAPTOR_LAYOUT_H_

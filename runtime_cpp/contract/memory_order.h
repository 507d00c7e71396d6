// In which orders the elements of a tensor lie in memory; both sides of the contract ask it.
#pragma once

#include <diopi/diopirt_ext.h>

#include <cstdint>

namespace diopi::contract {

// Whether the strides are those of packed dimensions, visited from the innermost. The stride of a dimension of size 1
// does not matter, and an empty tensor lies in every order.
class Packing {
public:
    Packing(const int64_t* sizes, const int64_t* strides) noexcept : sizes_(sizes), strides_(strides) {}
    void visit(int64_t dim) noexcept {
        packed_ = packed_ && (sizes_[dim] == 1 || strides_[dim] == block_);
        block_ *= sizes_[dim];
    }
    bool holds() const noexcept { return packed_ || block_ == 0; }

private:
    const int64_t* sizes_;
    const int64_t* strides_;
    int64_t block_ = 1;
    bool packed_ = true;
};

inline bool is_contiguous(const int64_t* sizes, const int64_t* strides, int64_t rank) noexcept {
    Packing packing(sizes, strides);
    for (int64_t dim = rank - 1; dim >= 0; --dim) packing.visit(dim);
    return packing.holds();
}

// With dimension 1 innermost and the batch outermost; the rank is 3 or more.
inline bool is_channels_last(const int64_t* sizes, const int64_t* strides, int64_t rank) noexcept {
    Packing packing(sizes, strides);
    packing.visit(1);
    for (int64_t dim = rank - 1; dim >= 2; --dim) packing.visit(dim);
    packing.visit(0);
    return packing.holds();
}

// The `orders` of a description.
inline uint32_t orders_of(const int64_t* sizes, const int64_t* strides, int64_t rank) noexcept {
    const uint32_t first = is_contiguous(sizes, strides, rank) ? diopi_order_contiguous : 0;
    return first | (rank >= 3 && is_channels_last(sizes, strides, rank) ? diopi_order_channels_last : 0);
}

}  // namespace diopi::contract

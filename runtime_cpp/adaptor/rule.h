// What a vendor needs of one parameter: the dtypes that it lacks, the memory orders that it takes.
#ifndef DIOPI_ADAPTOR_RULE_H_
#define DIOPI_ADAPTOR_RULE_H_

#include <array>
#include <cstdint>

#include "layout.h"

namespace diopi::adaptor {

// Built by the generator from convert_config.yaml, at compile time:
//   constexpr Rule kRule1 = Rule().cast(diopi_dtype_float64, diopi_dtype_float32).order(4, Order::channels_last);
class Rule {
public:
    // Tensors of dtype `from` are given to the vendor as `to`.
    constexpr Rule cast(diopiDtype_t from, diopiDtype_t to) const {
        Rule rule = *this;
        rule.cast_from_ |= 1u << from;
        rule.cast_to_[from] = static_cast<uint8_t>(to);
        return rule;
    }

    // Tensors of `rank` dimensions are given to the vendor in `order`; the rank is 3, 4 or 5.
    constexpr Rule order(int rank, Order order) const {
        Rule rule = *this;
        rule.orders_[rank - kFirstRank] = order;
        rule.ordered_ = true;
        return rule;
    }

    // Tensors of any rank without an order of its own are given to the vendor contiguous.
    constexpr Rule contiguous() const {
        Rule rule = *this;
        rule.contiguous_ = true;
        rule.ordered_ = true;
        return rule;
    }

    constexpr bool casts() const noexcept { return cast_from_ != 0; }
    constexpr bool casts(diopiDtype_t dtype) const noexcept {
        return static_cast<unsigned>(dtype) < cast_to_.size() && ((cast_from_ >> dtype) & 1u) != 0;
    }

    // What the vendor gets for `dtype`: the same where no cast is needed.
    constexpr diopiDtype_t target(diopiDtype_t dtype) const noexcept {
        return casts(dtype) ? static_cast<diopiDtype_t>(cast_to_[dtype]) : dtype;
    }

    constexpr bool ordered() const noexcept { return ordered_; }
    constexpr Order order_of(int64_t rank) const noexcept {
        const bool named = rank >= kFirstRank && rank < kFirstRank + static_cast<int64_t>(orders_.size());
        const Order order = named ? orders_[rank - kFirstRank] : Order::any;
        return order == Order::any && contiguous_ ? Order::channels_first : order;
    }

private:
    static constexpr int kFirstRank = 3;

    uint32_t cast_from_ = 0;  // bit d is set when dtype d is cast
    std::array<uint8_t, 17> cast_to_{};
    std::array<Order, 3> orders_{};  // of ranks 3, 4 and 5
    bool ordered_ = false;
    bool contiguous_ = false;
};

}  // namespace diopi::adaptor

#endif  // DIOPI_ADAPTOR_RULE_H_

// What a vendor needs of one parameter: the dtypes that it lacks, the memory orders that it takes.
#pragma once

#include <array>
#include <cstdint>

#include "describe.h"
#include "layout.h"

namespace diopi::adaptor {

template <Order Rank3, Order Rank4, Order Rank5, Order Others>
class OrderedRule;

// Built by the generator from convert_config.yaml, at compile time:
//   constexpr auto kRule1 = Rule().cast(diopi_dtype_float64, diopi_dtype_float32).order<4, Order::channels_last>();
class Rule {
public:
    constexpr Rule() = default;

    // Tensors of dtype `from` are given to the vendor as `to`. Casts come before orders.
    constexpr Rule cast(diopiDtype_t from, diopiDtype_t to) const {
        Rule rule = *this;
        rule.cast_from_ |= 1u << from;
        rule.cast_to_[from] = static_cast<uint8_t>(to);
        return rule;
    }

    // Tensors of `Rank` dimensions are given to the vendor in the order `Wanted`; the rank is 3, 4 or 5.
    template <int Rank, Order Wanted>
    constexpr auto order() const;

    // Tensors of any rank without an order of its own are given to the vendor contiguous.
    constexpr auto contiguous() const;

    constexpr bool casts() const noexcept { return cast_from_ != 0; }
    constexpr bool casts(diopiDtype_t dtype) const noexcept {
        return ((cast_from_ >> (dtype & 31)) & 1u) != 0;  // 255, which is no dtype, asks for bit 31, which is never set
    }

    // What the vendor gets for `dtype`: the same where no cast is needed.
    constexpr diopiDtype_t target(diopiDtype_t dtype) const noexcept {
        return casts(dtype) ? static_cast<diopiDtype_t>(cast_to_[dtype]) : dtype;
    }

    constexpr bool ordered() const noexcept {
        return orders_[0] != Order::any || orders_[1] != Order::any || orders_[2] != Order::any ||
               others_ != Order::any;
    }

    constexpr Order order_of(int64_t rank) const noexcept {
        const bool named = rank >= 3 && rank <= 5;
        const Order order = named ? orders_[static_cast<size_t>(rank - 3)] : Order::any;
        return order == Order::any ? others_ : order;
    }

protected:
    constexpr Rule(const Rule& casts, std::array<Order, 3> orders, Order others) : Rule(casts) {
        orders_ = orders;
        others_ = others;
    }

private:
    uint32_t cast_from_ = 0;  // bit d is set when dtype d is cast
    std::array<uint8_t, 17> cast_to_{};
    std::array<Order, 3> orders_{};  // of ranks 3, 4 and 5
    Order others_ = Order::any;
};

// A rule with orders. They are part of its type, so that the test of a tensor is compiled for them.
template <Order Rank3, Order Rank4, Order Rank5, Order Others>
class OrderedRule : public Rule {
public:
    explicit constexpr OrderedRule(const Rule& casts) : Rule(casts, {Rank3, Rank4, Rank5}, Others) {}

    template <int Rank, Order Wanted>
    constexpr auto order() const {
        static_assert(Rank >= 3 && Rank <= 5, "only tensors of 3, 4 and 5 dimensions have layouts");
        return OrderedRule<Rank == 3 ? Wanted : Rank3, Rank == 4 ? Wanted : Rank4, Rank == 5 ? Wanted : Rank5, Others>(
            *this);
    }
    constexpr auto contiguous() const { return OrderedRule<Rank3, Rank4, Rank5, Order::channels_first>(*this); }

    // Whether a tensor lies as the vendor takes it. Where the framework knows the order, that is one test of a bit.
    [[gnu::always_inline]] bool takes_order_of(const Description& tensor) const noexcept {
        const uint32_t suiting = suiting_at(tensor.rank);
        if ((tensor.orders & suiting) != 0 || suiting == ~0u) return true;
        return lies_in(order_of(tensor.rank), tensor.sizes, tensor.strides, tensor.rank);
    }

private:
    static constexpr uint32_t kOthers = suiting(Others);

    template <Order Named>
    static constexpr uint32_t kNamed = Named == Order::any ? kOthers : suiting(Named);

    // Ranks that take the same orders are not told apart.
    [[gnu::always_inline]] static constexpr uint32_t suiting_at(int64_t rank) noexcept {
        if (kNamed<Rank3> != kOthers && rank == 3) return kNamed<Rank3>;
        if (kNamed<Rank4> != kOthers && rank == 4) return kNamed<Rank4>;
        if (kNamed<Rank5> != kOthers && rank == 5) return kNamed<Rank5>;
        return kOthers;
    }
};

template <int Rank, Order Wanted>
constexpr auto Rule::order() const {
    return OrderedRule<Order::any, Order::any, Order::any, Order::any>(*this).order<Rank, Wanted>();
}

constexpr auto Rule::contiguous() const {
    return OrderedRule<Order::any, Order::any, Order::any, Order::any>(*this).contiguous();
}

}  // namespace diopi::adaptor

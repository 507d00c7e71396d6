// One call of a vendor's function with its tensors converted before and copied back after.
//
// A tensor that needs nothing costs a few comparisons here; everything else is out of line in call.cpp.
#pragma once

#include <diopi/diopirt.h>

#include <cstdint>
#include <memory>

#include "describe.h"
#include "guarded.h"
#include "rule.h"

namespace diopi::adaptor {

// What a function does with a parameter.
enum class Use : uint8_t { in, out, inout };

// A converted tensor and its substitute.
struct Slot {
    const char* name;                 // e.g. "input": the parameter
    diopiConstTensorHandle_t original;
    diopiTensorHandle_t* allocated;   // where the function put a tensor of its own; null for all others
    diopiTensorHandle_t temporary;
    diopiTensorHandle_t destination;  // the original where it is written, else null
    diopiDtype_t dtype;               // of the original
    diopiDtype_t target;              // of the temporary
    Order order;
    bool filled;                      // the temporary has the original's values
};

// Statuses stick: after a failure nothing more is converted, the function is not called, nothing is copied back.
class Call {
public:
    // `function` and the names of its parameters are literals; only what has to be told of a conversion reads them.
    Call(diopiContextHandle_t ctx, const char* function, Slot* slots, int64_t capacity) noexcept
        : ctx_(ctx),
          function_(function),
          slots_(slots),
          capacity_(capacity) {}
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    template <class AnyRule>
    [[gnu::always_inline]] diopiConstTensorHandle_t in(diopiConstTensorHandle_t tensor, const AnyRule& rule,
                                                       const char* name) noexcept {
        return suits(tensor, rule) ? tensor : convert(tensor, nullptr, rule, Use::in, name);
    }

    // Some inputs are mutable handles in the contract; they are inputs all the same.
    template <class AnyRule>
    [[gnu::always_inline]] diopiTensorHandle_t in(diopiTensorHandle_t tensor, const AnyRule& rule,
                                                  const char* name) noexcept {
        return suits(tensor, rule) ? tensor : convert(tensor, nullptr, rule, Use::in, name);
    }

    template <class AnyRule>
    [[gnu::always_inline]] diopiTensorHandle_t out(diopiTensorHandle_t tensor, const AnyRule& rule,
                                                   const char* name) noexcept {
        return suits(tensor, rule) ? tensor : convert(tensor, tensor, rule, Use::out, name);
    }

    template <class AnyRule>
    [[gnu::always_inline]] diopiTensorHandle_t inout(diopiTensorHandle_t tensor, const AnyRule& rule,
                                                     const char* name) noexcept {
        return suits(tensor, rule) ? tensor : convert(tensor, tensor, rule, Use::inout, name);
    }

    // A tensor that the function allocates: if it comes in the dtype that `dtype` is cast to, it is cast back.
    diopiTensorHandle_t* allocated(diopiTensorHandle_t* tensor, diopiDtype_t dtype, const Rule& rule,
                                   const char* name) noexcept {
        if (tensor != nullptr && rule.casts(dtype)) expect(tensor, dtype, rule.target(dtype), name);
        return tensor;
    }

    // The dtype of an input, before conversion.
    diopiDtype_t dtype(diopiConstTensorHandle_t tensor) noexcept;

    // Calls the function unless a conversion failed, then copies back unless the function failed.
    template <typename Function>
    diopiError_t run(const Function& function) noexcept {
        const diopiError_t status = status_ == diopiSuccess ? guarded(function_, function) : status_;
        return used_ == 0 ? status : finish(status);
    }

    void fail(diopiError_t status) noexcept {
        if (status_ == diopiSuccess) status_ = status;
    }

private:
    // Whether the vendor takes the tensor as it is. One that cannot be asked does not suit: `convert` finds out why.
    [[gnu::always_inline]] static bool suits(diopiConstTensorHandle_t tensor, const Rule& rule) noexcept {
        if (tensor == nullptr) return true;
        if (rule.ordered()) return suits_in_order(tensor, rule);
        diopiDtype_t dtype;
        return diopiGetTensorDtype(tensor, &dtype) == diopiSuccess && !rule.casts(dtype);
    }

    template <Order Rank3, Order Rank4, Order Rank5, Order Others>
    [[gnu::always_inline]] static bool suits(diopiConstTensorHandle_t tensor,
                                             const OrderedRule<Rank3, Rank4, Rank5, Others>& rule) noexcept {
        if (tensor == nullptr) return true;
        Description description;
        description.orders = 0;
        return describe(tensor, &description) == diopiSuccess && !rule.casts(description.dtype) &&
               rule.takes_order_of(description);
    }

    // The same for a rule whose type has lost its orders.
    static bool suits_in_order(diopiConstTensorHandle_t tensor, const Rule& rule) noexcept;

    bool check(diopiError_t status) noexcept {
        fail(status);
        return status == diopiSuccess;
    }

    [[gnu::cold]] diopiTensorHandle_t convert(diopiConstTensorHandle_t tensor, diopiTensorHandle_t destination,
                                              const Rule& rule, Use use, const char* name) noexcept;
    void expect(diopiTensorHandle_t* tensor, diopiDtype_t dtype, diopiDtype_t target, const char* name) noexcept;
    [[gnu::cold]] diopiError_t finish(diopiError_t status) noexcept;
    void give_back(diopiTensorHandle_t temporary) noexcept;

    diopiError_t move(const Slot& slot, diopiTensorHandle_t to, diopiConstTensorHandle_t from) noexcept;
    bool fill(Slot& slot) noexcept;
    Slot* same(diopiConstTensorHandle_t tensor, const Description& description, diopiDtype_t target,
               Order order) noexcept;
    Slot* append() noexcept;
    diopiTensorHandle_t require(const Description& description, diopiDtype_t dtype, Order order) noexcept;
    diopiError_t restore(const Slot& slot) noexcept;

    diopiContextHandle_t ctx_;
    const char* function_;
    Slot* slots_;
    int64_t capacity_;
    int64_t used_ = 0;
    diopiError_t status_ = diopiSuccess;
    std::unique_ptr<Slot[]> grown_;  // lists may need more slots than the function has parameters
};

// A call with room for its converted tensors on the stack.
template <int64_t Tensors>
class CallOf : public Call {
public:
    CallOf(diopiContextHandle_t ctx, const char* function) noexcept : Call(ctx, function, room_, Tensors) {}

private:
    Slot room_[Tensors];
};

}  // namespace diopi::adaptor

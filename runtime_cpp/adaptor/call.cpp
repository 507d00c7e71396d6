// The conversions themselves: temporaries, sharing, and the way back.
#include "call.h"

#include <algorithm>
#include <new>

#include "primitives.h"
#include "range.h"
#include "trace.h"

namespace diopi::adaptor {

namespace {

bool on_host(diopiConstTensorHandle_t tensor) noexcept {
    diopiDevice_t device = diopi_device;  // older frameworks cannot be asked
    return diopiGetTensorDevice != nullptr && diopiGetTensorDevice(tensor, &device) == diopiSuccess &&
           device == diopi_host;
}

bool equal(const int64_t* a, const int64_t* b, int64_t count) noexcept { return std::equal(a, a + count, b); }

bool same_place(diopiConstTensorHandle_t tensor, diopiConstTensorHandle_t other) noexcept {
    const void* place = nullptr;
    const void* other_place = nullptr;
    return diopiGetTensorDataConst(tensor, &place) == diopiSuccess &&
           diopiGetTensorDataConst(other, &other_place) == diopiSuccess && place == other_place && place != nullptr;
}

bool same_form(const Description& a, const Description& b) noexcept {
    return a.dtype == b.dtype && a.rank == b.rank && equal(a.sizes, b.sizes, a.rank) &&
           equal(a.strides, b.strides, a.rank);
}

}  // namespace

diopiDtype_t Call::dtype(diopiConstTensorHandle_t tensor) noexcept {
    diopiDtype_t dtype = diopi_dtype_unsupported;
    if (tensor != nullptr && status_ == diopiSuccess) check(diopiGetTensorDtype(tensor, &dtype));
    return dtype;
}

bool Call::suits_in_order(diopiConstTensorHandle_t tensor, const Rule& rule) noexcept {
    Description description;
    return describe(tensor, &description) == diopiSuccess && !rule.casts(description.dtype) &&
           lies_in(rule.order_of(description.rank), description.sizes, description.strides, description.rank);
}

diopiTensorHandle_t Call::convert(diopiConstTensorHandle_t tensor, diopiTensorHandle_t destination, const Rule& rule,
                                  Use use, const char* name) noexcept {
    auto* const unchanged = const_cast<diopiTensorHandle_t>(tensor);
    Description description;
    if (status_ != diopiSuccess || !check(describe(tensor, &description))) return unchanged;
    // Tensors of host memory are values that the function reads by itself: no device can convert them.
    if (on_host(tensor)) return unchanged;
    const diopiDtype_t target = rule.target(description.dtype);
    const Order order = rule.order_of(description.rank);
    Slot* slot = same(tensor, description, target, order);
    if (slot == nullptr) {
        if (status_ != diopiSuccess) return unchanged;
        const diopiTensorHandle_t temporary = require(description, target, order);
        slot = temporary == nullptr ? nullptr : append();
        if (slot == nullptr) return unchanged;
        *slot = {name, tensor, nullptr, temporary, nullptr, description.dtype, target, order, false};
    }
    if (use != Use::out && !slot->filled && !fill(*slot)) return unchanged;
    if (use != Use::in && slot->destination == nullptr) slot->destination = destination;
    return slot->temporary;
}

void Call::expect(diopiTensorHandle_t* tensor, diopiDtype_t dtype, diopiDtype_t target, const char* name) noexcept {
    if (status_ != diopiSuccess) return;
    Slot* const slot = append();
    if (slot != nullptr) *slot = {name, nullptr, tensor, nullptr, nullptr, dtype, target, Order::any, false};
}

diopiError_t Call::finish(diopiError_t status) noexcept {
    for (int64_t i = 0; status == diopiSuccess && i < used_; ++i) status = restore(slots_[i]);
    for (int64_t i = 0; i < used_; ++i) give_back(slots_[i].temporary);
    return status;
}

void Call::give_back(diopiTensorHandle_t temporary) noexcept {
    if (temporary != nullptr && diopiReturnTensor != nullptr) static_cast<void>(diopiReturnTensor(ctx_, temporary));
}

diopiError_t Call::restore(const Slot& slot) noexcept {
    if (slot.allocated == nullptr) {
        if (slot.destination == nullptr) return diopiSuccess;
        return move(slot, slot.destination, slot.temporary);
    }
    const diopiTensorHandle_t result = *slot.allocated;
    Description description;
    if (result == nullptr || !check(describe(result, &description)) || description.dtype != slot.target) return status_;
    const diopiTensorHandle_t restored = require(description, slot.dtype, Order::any);
    if (restored == nullptr) return status_;
    const diopiError_t status = move(slot, restored, result);
    if (status == diopiSuccess) *slot.allocated = restored;
    give_back(status == diopiSuccess ? result : restored);
    return status;
}

diopiError_t Call::move(const Slot& slot, diopiTensorHandle_t to, diopiConstTensorHandle_t from) noexcept {
    const diopiError_t status =
        slot.dtype != slot.target ? primitives::cast(ctx_, to, from) : primitives::copy(ctx_, from, to);
    if (status == diopiSuccess && tracing()) trace(function_, slot.name, from, to);
    return status;
}

bool Call::fill(Slot& slot) noexcept {
    if (checking_range()) check(check_range(ctx_, function_, slot.name, slot.original, slot.target));
    slot.filled = status_ == diopiSuccess && check(move(slot, slot.temporary, slot.original));
    return slot.filled;
}

Slot* Call::same(diopiConstTensorHandle_t tensor, const Description& description, diopiDtype_t target,
                 Order order) noexcept {
    for (int64_t i = 0; i < used_; ++i) {
        Slot& slot = slots_[i];
        const bool suits = slot.original != nullptr && slot.target == target && slot.order == order;
        if (suits && tensor == slot.original) return &slot;
        // Another handle of the same memory, seen through the same shape and strides, is the same tensor.
        if (!suits || !same_place(tensor, slot.original)) continue;
        Description theirs;
        if (!check(describe(slot.original, &theirs))) return nullptr;
        if (same_form(description, theirs)) return &slot;
    }
    return nullptr;
}

Slot* Call::append() noexcept {
    if (used_ == capacity_) {
        std::unique_ptr<Slot[]> larger(new (std::nothrow) Slot[capacity_ * 2]);
        if (larger == nullptr) {
            fail(diopiErrorOccurred);
            return nullptr;
        }
        std::copy(slots_, slots_ + used_, larger.get());
        grown_ = std::move(larger);
        slots_ = grown_.get();
        capacity_ *= 2;
    }
    return &slots_[used_++];
}

diopiTensorHandle_t Call::require(const Description& description, diopiDtype_t dtype, Order order) noexcept {
    const int64_t rank = description.rank;
    if (rank > kMaxRank) {
        fail(diopiErrorOccurred);
        return nullptr;
    }
    int64_t room[kMaxRank];
    const diopiSize_t sizes{description.sizes, rank};
    diopiSize_t strides{room, rank};
    if (lies_in(order, description.sizes, description.strides, rank) &&
        is_dense(description.sizes, description.strides, rank)) {
        strides.data = description.strides;
    } else {
        strides_in(order, description.sizes, rank, room);
    }
    diopiTensorHandle_t tensor = nullptr;
    if (!check(diopiRequireTensor(ctx_, &tensor, &sizes, &strides, dtype, diopi_device))) return nullptr;
    if (tensor == nullptr) fail(diopiErrorOccurred);
    return tensor;
}

}  // namespace diopi::adaptor

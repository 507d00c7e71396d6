// The conversions themselves: temporaries, sharing, and the way back.
#include "call.h"

#include <algorithm>
#include <new>

#include "primitives.h"

namespace diopi::adaptor {

namespace {

bool equal(const diopiSize_t& a, const diopiSize_t& b) noexcept {
    return a.len == b.len && std::equal(a.data, a.data + a.len, b.data);
}

// Tensors of host memory are values that the function reads by itself: no device can convert them.
bool on_host(diopiConstTensorHandle_t tensor) noexcept {
    diopiDevice_t device = diopi_device;
    return diopiGetTensorDevice != nullptr && diopiGetTensorDevice(tensor, &device) == diopiSuccess &&
           device == diopi_host;
}

// Two handles of one piece of memory, seen through the same shape and strides.
bool same_view(diopiConstTensorHandle_t tensor, const Description& description,
               diopiConstTensorHandle_t other) noexcept {
    if (tensor == other) return true;
    const void* place = nullptr;
    const void* other_place = nullptr;
    Description theirs;
    return diopiGetTensorDataConst(tensor, &place) == diopiSuccess &&
           diopiGetTensorDataConst(other, &other_place) == diopiSuccess && place == other_place && place != nullptr &&
           diopiGetTensorDtype(other, &theirs.dtype) == diopiSuccess && theirs.dtype == description.dtype &&
           diopiGetTensorShape(other, &theirs.sizes) == diopiSuccess && equal(theirs.sizes, description.sizes) &&
           diopiGetTensorStride(other, &theirs.strides) == diopiSuccess && equal(theirs.strides, description.strides);
}

}  // namespace

diopiDtype_t Call::dtype(diopiConstTensorHandle_t tensor) noexcept {
    diopiDtype_t dtype = diopi_dtype_unsupported;
    if (tensor != nullptr && status_ == diopiSuccess) check(diopiGetTensorDtype(tensor, &dtype));
    return dtype;
}

diopiTensorHandle_t Call::convert(diopiConstTensorHandle_t tensor, diopiTensorHandle_t destination, const Rule& rule,
                                  Description& description, Use use, const char* name) noexcept {
    auto* const unchanged = const_cast<diopiTensorHandle_t>(tensor);
    if (on_host(tensor) || !complete(tensor, description)) return unchanged;
    const diopiDtype_t target = rule.target(description.dtype);
    const Order order = rule.order_of(description.sizes.len);
    Slot* slot = same(tensor, description, target, order);
    if (slot == nullptr) {
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

diopiError_t Call::write_back() noexcept {
    for (int64_t i = 0; i < used_; ++i) {
        const diopiError_t status = restore(slots_[i]);
        if (status != diopiSuccess) return status;
    }
    return status_;
}

diopiError_t Call::restore(const Slot& slot) noexcept {
    if (slot.allocated == nullptr) {
        if (slot.destination == nullptr) return diopiSuccess;
        return slot.dtype != slot.target ? primitives::cast(ctx_, slot.destination, slot.temporary)
                                         : primitives::copy(ctx_, slot.temporary, slot.destination);
    }
    const diopiTensorHandle_t result = *slot.allocated;
    Description description;
    if (result == nullptr || !complete(result, description) || description.dtype != slot.target) return status_;
    const diopiTensorHandle_t restored = require(description, slot.dtype, Order::any);
    if (restored == nullptr) return status_;
    const diopiError_t status = primitives::cast(ctx_, restored, result);
    if (status == diopiSuccess) *slot.allocated = restored;
    return status;
}

bool Call::complete(diopiConstTensorHandle_t tensor, Description& description) noexcept {
    if (description.dtype == diopi_dtype_unsupported && !check(diopiGetTensorDtype(tensor, &description.dtype))) {
        return false;
    }
    if (description.strides.data != nullptr) return true;
    if (!check(diopiGetTensorShape(tensor, &description.sizes))) return false;
    if (!check(diopiGetTensorStride(tensor, &description.strides))) return false;
    if (description.sizes.len > kMaxRank) fail(diopiErrorOccurred);
    return status_ == diopiSuccess;
}

bool Call::fill(Slot& slot) noexcept {
    slot.filled = check(slot.dtype != slot.target ? primitives::cast(ctx_, slot.temporary, slot.original)
                                                  : primitives::copy(ctx_, slot.original, slot.temporary));
    return slot.filled;
}

Slot* Call::same(diopiConstTensorHandle_t tensor, const Description& description, diopiDtype_t target,
                 Order order) noexcept {
    for (int64_t i = 0; i < used_; ++i) {
        Slot& slot = slots_[i];
        const bool suits = slot.original != nullptr && slot.target == target && slot.order == order;
        if (suits && same_view(tensor, description, slot.original)) return &slot;
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
    int64_t room[kMaxRank];
    diopiSize_t strides{room, description.sizes.len};
    if (lies_in(order, description.sizes, description.strides) && is_dense(description.sizes, description.strides)) {
        strides.data = description.strides.data;
    } else {
        strides_in(order, description.sizes, room);
    }
    diopiTensorHandle_t tensor = nullptr;
    if (!check(diopiRequireTensor(ctx_, &tensor, &description.sizes, &strides, dtype, diopi_device))) return nullptr;
    if (tensor == nullptr) fail(diopiErrorOccurred);
    return tensor;
}

}  // namespace diopi::adaptor

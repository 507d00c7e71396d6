// The two equally large address windows of the chip: one that nobody can touch, and the memory behind it.
//
// Device pointers lie in the first window; a constant difference leads to the second. So a host that reads device memory
// faults at once, and neither a kernel nor the question "which device?" costs more than an addition.
#pragma once

#include <cstddef>
#include <cstdint>

namespace droplet {

class AddressSpace {
public:
    // Reserves both windows; costs address space only. Throws Error (tangErrorInitialization) when there is none left.
    AddressSpace(int32_t devices, size_t memory_bytes);
    ~AddressSpace();
    AddressSpace(const AddressSpace&) = delete;
    AddressSpace& operator=(const AddressSpace&) = delete;

    // The first device pointer of a device.
    uintptr_t device_base(int32_t device) const { return base_ + static_cast<size_t>(device) * memory_bytes_; }
    // The device whose memory holds the pointer, or -1.
    int32_t device_of(const void* pointer) const {
        const uintptr_t offset = reinterpret_cast<uintptr_t>(pointer) - base_;
        return offset < span_ ? static_cast<int32_t>(offset / memory_bytes_) : -1;
    }
    uintptr_t base() const { return base_; }
    size_t span() const { return span_; }
    ptrdiff_t delta() const { return static_cast<ptrdiff_t>(memory_) - static_cast<ptrdiff_t>(base_); }

private:
    size_t memory_bytes_;
    size_t span_;
    uintptr_t base_ = 0;  // of the window that device pointers lie in
    uintptr_t memory_ = 0;  // of the window that kernels work in
};

}  // namespace droplet

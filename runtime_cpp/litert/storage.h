// The memory of a tensor, on the host or the device, between two guards that show whether a kernel left it.
#pragma once

#include <diopi/diopirt.h>

#include <cstdint>

namespace diopi::litert {

class Storage {
public:
    // On the current device. Fresh memory is filled with 0xFF, which is NaN in every floating-point type.
    Storage(uint64_t bytes, diopiDevice_t device);
    ~Storage();
    Storage(const Storage&) = delete;
    Storage& operator=(const Storage&) = delete;

    void* data() const { return static_cast<char*>(memory_) + kGuardBytes; }
    uint64_t bytes() const { return bytes_; }
    diopiDevice_t device() const { return device_; }
    int32_t device_index() const { return device_index_; }

    void write(const void* source, uint64_t bytes) const;  // from the start on
    void read(void* destination, uint64_t bytes) const;
    // Throws Error that says on which side and how far away something was written.
    void check_guards() const;

private:
    static constexpr uint64_t kGuardBytes = 512;  // keeps the data as well aligned as the memory

    void release() const;

    uint64_t bytes_;
    diopiDevice_t device_;
    int32_t device_index_;
    void* memory_;
};

}  // namespace diopi::litert

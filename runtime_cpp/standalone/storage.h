// The memory of a tensor, on the host or the device, between two guards that show whether a kernel wrote outside of it.
//
// AddressSanitizer sees reads too, of the gaps that it puts around a block; there are no guards then.
#pragma once

#include <diopi/diopirt.h>

#include <cstdint>

#include "../contract/address_sanitizer.h"

namespace diopi::standalone {

// The byte that fresh memory is filled with from now on; guards are of another. At first 0xFF, which is NaN in every
// floating-point type.
void set_fresh(unsigned char byte);
// Whether the byte was set: then memory that is used again is filled with it too.
bool fresh_is_set();

class Storage {
public:
    // On the current device.
    Storage(uint64_t bytes, diopiDevice_t device);
    ~Storage();
    Storage(const Storage&) = delete;
    Storage& operator=(const Storage&) = delete;

    void* data() const {
        return static_cast<char*>(memory_) + kGuardBytes;
    }  // null under AddressSanitizer for no bytes
    uint64_t bytes() const { return bytes_; }
    diopiDevice_t device() const { return device_; }
    int32_t device_index() const { return device_index_; }

    void write(const void* source, uint64_t bytes) const;  // from the start on
    void read(void* destination, uint64_t bytes) const;
    void refill() const;  // as fresh memory is
    // Throws Error that says on which side and how far away something was written.
    void check_guards() const;

private:
    static constexpr uint64_t kGuardBytes =
        kAddressSanitizer ? 0 : 512;  // keeps the data as well aligned as the memory

    void release() const;
    void copy_in(void* memory, const void* source, uint64_t bytes) const;

    unsigned char guard_;
    uint64_t bytes_;
    diopiDevice_t device_;
    int32_t device_index_;
    void* memory_;
};

}  // namespace diopi::standalone

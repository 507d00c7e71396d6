// The vendor library of this process and its device functions, whichever of the three forms it gives them in.
#pragma once

#include <diopi/device.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace diopi::standalone {

// Set by the diopiRegister...Func calls that initLibrary() makes.
diopiDeviceApi_t& registered_functions();

class Vendor {
public:
    // Opens the library. Throws Error.
    explicit Vendor(const std::string& path);

    const std::string& path() const { return path_; }
    void* symbol(const char* name) const;  // null when there is none
    // The nine required functions are there; each optional one may be null.
    const diopiDeviceApi_t& api() const { return api_; }

    int32_t current_device() const;
    void set_device(int32_t device) const;
    uint64_t used_memory() const;  // of the current device, in bytes; throws Error when the vendor does not tell
    diopiStreamHandle_t create_stream() const;
    void synchronize(diopiStreamHandle_t stream) const;

    void* allocate(uint64_t bytes) const;  // on the current device; throws Error when out of memory
    // Copies that are finished when the call returns, after all work of the device.
    void write(void* device_memory, const void* source, uint64_t bytes);
    void read(void* destination, const void* device_memory, uint64_t bytes);

    // Throws Error with the vendor's words when `status` is not 0.
    void check(int32_t status, const char* what) const;

private:
    diopiStreamHandle_t transfer_stream();
    void settle() const;

    std::string path_;
    void* library_;
    diopiDeviceApi_t api_;
    std::mutex mutex_;
    std::map<int32_t, diopiStreamHandle_t> transfer_streams_;  // by device
};

// Opens the vendor library of this process; throws Error when another one is open already.
void load_vendor(const std::string& path);
// Throws Error (diopiNotInited) before load_vendor().
Vendor& vendor();

}  // namespace diopi::standalone

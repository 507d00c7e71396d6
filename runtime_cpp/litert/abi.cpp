// Compares what a vendor library says about its headers with litert's own.
#include "abi.h"

#include <diopi/device.h>
#include <dlfcn.h>

#include <cstddef>

#include "error.h"

namespace diopi::litert {
namespace {

// Up to the last of the nine functions that every vendor has.
constexpr size_t kLeastTableBytes = offsetof(diopiDeviceApi_t, get_last_error_string) + sizeof(get_last_error_string_func_t);

void check_device_table(void* library, const std::string& path) {
    using GetDeviceApi = const diopiDeviceApi_t* (*)();
    const auto get_table = reinterpret_cast<GetDeviceApi>(dlsym(library, "diopiGetDeviceApi"));
    if (get_table == nullptr) return;
    const diopiDeviceApi_t* table = get_table();
    if (table == nullptr || table->size < kLeastTableBytes || table->size % alignof(diopiDeviceApi_t) != 0 ||
        table->version < 1) {
        throw Error("'" + path + "' gives a device table that is not one of device.h: build the library again");
    }
}

}  // namespace

void check_abi(void* library, const std::string& path) { check_device_table(library, path); }

}  // namespace diopi::litert

// Compares what a vendor library says about its headers with standalone's own.
#include "abi.h"

#include <diopi/device.h>
#include <dlfcn.h>

#include <cstddef>

#include "../contract/abi_difference.h"
#include "error.h"

namespace diopi::standalone {
namespace {

// Up to the last of the nine functions that every vendor has.
constexpr size_t kLeastTableBytes =
    offsetof(diopiDeviceApi_t, get_last_error_string) + sizeof(get_last_error_string_func_t);

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

void check_record(void* library, const std::string& path) {
    using GetRecord = const diopiAbiRecord_t* (*)();
    const auto get_record = reinterpret_cast<GetRecord>(dlsym(library, "diopiGetAbiRecord"));
    const diopiAbiRecord_t* record = get_record == nullptr ? nullptr : get_record();
    if (record == nullptr) return;  // a library of the time before records: its functions are checked by presence
    const std::string difference = abi_difference(*record);
    if (difference.empty()) return;
    throw Error("'" + path + "' was built against other headers than libdiopirt.so: " + difference +
                "; build both from the same sources");
}

}  // namespace

void check_abi(void* library, const std::string& path) {
    check_record(library, path);
    check_device_table(library, path);
}

}  // namespace diopi::standalone

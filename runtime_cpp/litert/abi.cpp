// Compares what a vendor library says about its headers with litert's own.
#include "abi.h"

#include <diopi/device.h>
#include <diopi/functions.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

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

[[noreturn]] void refuse(const std::string& path, const std::string& difference) {
    throw Error("'" + path + "' was built against other headers than litert: " + difference +
                "; build both from the same sources");
}

void compare(const std::string& path, const char* what, uint64_t theirs, uint64_t ours) {
    if (theirs == ours) return;
    refuse(path, std::string(what) + " is " + std::to_string(theirs) + " there and " + std::to_string(ours) + " here");
}

void check_record(void* library, const std::string& path) {
    using GetRecord = const diopiAbiRecord_t* (*)();
    const auto get_record = reinterpret_cast<GetRecord>(dlsym(library, "diopiGetAbiRecord"));
    if (get_record == nullptr) return;  // a library of the time before records: its functions are checked by presence
    const diopiAbiRecord_t& record = *get_record();
    compare(path, "the size of the ABI record", record.size, sizeof(diopiAbiRecord_t));
    compare(path, "DIOPI_VERSION", record.version, DIOPI_VERSION);
    compare(path, "the size of diopiSize_t", record.sizeof_size, sizeof(diopiSize_t));
    compare(path, "the size of diopiScalar_t", record.sizeof_scalar, sizeof(diopiScalar_t));
    compare(path, "the size of an enum", record.sizeof_enum, sizeof(diopiError_t));
    if (record.runtime_hash != DIOPI_ABI_RT_HASH) refuse(path, "a declaration of diopirt.h differs");
    if (record.functions_hash != DIOPI_ABI_FUNCTIONS_HASH) refuse(path, "a declaration of functions.h differs");
}

}  // namespace

void check_abi(void* library, const std::string& path) {
    check_record(library, path);
    check_device_table(library, path);
}

}  // namespace diopi::litert

// Compares what a vendor library says about its headers with those of this build.
#include "abi.h"

#include <diopi/device.h>
#include <diopi/functions.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace dipu {
namespace {

constexpr const char* kRemedy = "; build both from the same sources";

std::string differs(const char* what) {
    return std::string("was built against other headers than torch_dipu: ") + what + " differs" + kRemedy;
}

std::string check_record(const diopiAbiRecord_t& record) {
    const std::pair<const char*, bool> facts[] = {
        {"the size of the ABI record", record.size == sizeof(diopiAbiRecord_t)},
        {"the version of the contract", record.version == DIOPI_VERSION},
        {"the size of diopiSize_t", record.sizeof_size == sizeof(diopiSize_t)},
        {"the size of diopiScalar_t", record.sizeof_scalar == sizeof(diopiScalar_t)},
        {"the size of an enum", record.sizeof_enum == sizeof(diopiError_t)},
        {"a declaration of diopirt.h", record.runtime_hash == DIOPI_ABI_RT_HASH},
        {"a declaration of functions.h", record.functions_hash == DIOPI_ABI_FUNCTIONS_HASH},
    };
    for (const auto& [what, agrees] : facts) {
        if (!agrees) {
            return differs(what);
        }
    }
    return {};
}

// An older table is shorter; one that ends before the required functions is not a table.
std::string check_table(const diopiDeviceApi_t* table) {
    constexpr std::size_t kLeast = offsetof(diopiDeviceApi_t, get_last_error_string) + sizeof(get_last_error_string_func_t);
    if (table == nullptr || table->size < kLeast || table->version < 1) {
        return std::string("gives a device table that is not one of device.h") + kRemedy;
    }
    return {};
}

}  // namespace

std::string check_abi(const SymbolLookup& symbol) {
    // A library of the time before records is checked by the presence of its functions alone.
    const auto get_record = reinterpret_cast<const diopiAbiRecord_t* (*)()>(symbol("diopiGetAbiRecord"));
    if (get_record != nullptr && get_record() != nullptr) {
        if (std::string fault = check_record(*get_record()); !fault.empty()) {
            return fault;
        }
    }
    const auto get_table = reinterpret_cast<const diopiDeviceApi_t* (*)()>(symbol("diopiGetDeviceApi"));
    return get_table == nullptr ? std::string() : check_table(get_table());
}

}  // namespace dipu

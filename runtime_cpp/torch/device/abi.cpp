// Compares what a vendor library says about its headers with those of this build.
#include "abi.h"

#include <diopi/device.h>

#include <cstddef>

#include "../../contract/abi_difference.h"

namespace dipu {
namespace {

constexpr const char* kRemedy = "; build both from the same sources";

// An older table is shorter; one that ends before the required functions is not a table.
std::string check_table(const diopiDeviceApi_t* table) {
    constexpr std::size_t kLeast =
        offsetof(diopiDeviceApi_t, get_last_error_string) + sizeof(get_last_error_string_func_t);
    if (table == nullptr || table->size < kLeast || table->version < 1) {
        return std::string("gives a device table that is not one of device.h").append(kRemedy);
    }
    return {};
}

}  // namespace

std::string check_abi(const SymbolLookup& symbol) {
    // A library of the time before records is checked by the presence of its functions alone.
    const auto get_record = reinterpret_cast<const diopiAbiRecord_t* (*)()>(symbol("diopiGetAbiRecord"));
    if (get_record != nullptr && get_record() != nullptr) {
        if (const std::string difference = diopi::abi_difference(*get_record()); !difference.empty()) {
            return "was built against other headers than torch_dipu: " + difference + kRemedy;
        }
    }
    const auto get_table = reinterpret_cast<const diopiDeviceApi_t* (*)()>(symbol("diopiGetDeviceApi"));
    return get_table == nullptr ? std::string() : check_table(get_table());
}

}  // namespace dipu

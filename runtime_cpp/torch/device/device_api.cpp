// Fills the device table from the newest form that the vendor library offers.
#include "device_api.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "../../contract/error_text.h"
#include "vendor_library.h"

namespace dipu {
namespace {

struct Api {
    diopiDeviceApi_t table{};
    bool ready = false;
};

Api& api() {
    static Api value;
    return value;
}

template <class Function>
Function exported(const char* name) {
    return reinterpret_cast<Function>(vendor_symbol(name));
}

// Entries past the vendor's own size read as null.
bool from_table(diopiDeviceApi_t& table) {
    const auto get = exported<const diopiDeviceApi_t* (*)()>("diopiGetDeviceApi");
    const diopiDeviceApi_t* const theirs = get == nullptr ? nullptr : get();
    if (theirs == nullptr) {
        return false;
    }
    std::memcpy(&table, theirs, std::min<std::size_t>(theirs->size, sizeof(table)));
    return true;
}

// initLibrary() calls the diopiRegister...Func functions of this library.
bool from_registration(diopiDeviceApi_t& table) {
    table = registered_api();
    return table.malloc != nullptr;
}

bool from_exports(diopiDeviceApi_t& table) {
    table.malloc = exported<malloc_func_t>("device_malloc");
    table.free = exported<free_func_t>("device_free");
    table.create_stream = exported<create_stream_func_t>("device_make_stream");
    table.destroy_stream = exported<destroy_stream_func_t>("device_destroy_stream");
    table.sync_stream = exported<sync_stream_func_t>("device_synchronize_stream");
    table.memcpy_h2d_async = exported<memcpy_h2d_async_func_t>("device_memcpy_h2d_async");
    table.memcpy_d2h_async = exported<memcpy_d2h_async_func_t>("device_memcpy_d2h_async");
    table.memcpy_d2d_async = exported<memcpy_d2d_async_func_t>("device_memcpy_d2d_async");
    return table.malloc != nullptr;
}

const char* no_error_text() { return "the vendor gives no text"; }

void check_required(const diopiDeviceApi_t& table) {
    const std::pair<const char*, bool> required[] = {
        {"create_stream", table.create_stream != nullptr},
        {"destroy_stream", table.destroy_stream != nullptr},
        {"sync_stream", table.sync_stream != nullptr},
        {"malloc", table.malloc != nullptr},
        {"free", table.free != nullptr},
        {"memcpy_h2d_async", table.memcpy_h2d_async != nullptr},
        {"memcpy_d2h_async", table.memcpy_d2h_async != nullptr},
        {"memcpy_d2d_async", table.memcpy_d2d_async != nullptr},
    };
    for (const auto& [name, present] : required) {
        TORCH_CHECK(present, "the vendor library ", vendor_library_path(), " lacks the device function '", name,
                    "', which every vendor must provide");
    }
}

}  // namespace

diopiDeviceApi_t& registered_api() {
    static diopiDeviceApi_t table{};
    return table;
}

void load_device_api() {
    if (api().ready) {
        return;
    }
    const auto initialize = exported<int32_t (*)()>("initLibrary");
    if (initialize != nullptr) {
        const int32_t status = initialize();
        TORCH_CHECK(status == 0, "initLibrary() of the vendor library ", vendor_library_path(), " failed with status ",
                    status);
    }
    diopiDeviceApi_t table{};
    TORCH_CHECK(from_table(table) || from_registration(table) || from_exports(table), "the vendor library ",
                vendor_library_path(),
                " offers no device functions: neither diopiGetDeviceApi, nor registrations in "
                "initLibrary, nor device_malloc and its companions");
    check_required(table);
    if (table.get_last_error_string == nullptr) {
        table.get_last_error_string = &no_error_text;
    }
    api().table = table;
    api().ready = true;
}

const diopiDeviceApi_t& device_api() {
    TORCH_CHECK(api().ready, "no vendor library is loaded for the device dipu");
    return api().table;
}

std::string last_vendor_error() {
    const char* const text = api().ready ? api().table.get_last_error_string() : nullptr;
    return text == nullptr || *text == '\0' ? no_error_text() : diopi::error_text(text);
}

std::string last_operator_error() {
    static const auto last_error = reinterpret_cast<const char* (*)()>(vendor_symbol("diopiGetLastErrorString"));
    const char* const text = last_error == nullptr ? nullptr : last_error();
    return text == nullptr || *text == '\0' ? last_vendor_error() : diopi::error_text(text);
}

void check_device(int32_t status, const char* action) {
    TORCH_CHECK(status == 0, "dipu could not ", action, " (status ", status, "): ", last_vendor_error());
}

}  // namespace dipu

// The classic form: a vendor's initLibrary() hands over its functions one by one.
extern "C" {
#define DIPU_REGISTRATION(name, type, entry) \
    DIPU_API diopiError_t name(type func) {  \
        dipu::registered_api().entry = func; \
        return diopiSuccess;                 \
    }
DIPU_REGISTRATION(diopiRegisterDeviceMallocFunc, malloc_func_t, malloc)
DIPU_REGISTRATION(diopiRegisterDevMemFreeFunc, free_func_t, free)
DIPU_REGISTRATION(diopiRegisterMemcpyH2DAsyncFunc, memcpy_h2d_async_func_t, memcpy_h2d_async)
DIPU_REGISTRATION(diopiRegisterMemcpyD2HAsyncFunc, memcpy_d2h_async_func_t, memcpy_d2h_async)
DIPU_REGISTRATION(diopiRegisterMemcpyD2DAsyncFunc, memcpy_d2d_async_func_t, memcpy_d2d_async)
DIPU_REGISTRATION(diopiRegisterStreamCreateFunc, create_stream_func_t, create_stream)
DIPU_REGISTRATION(diopiRegisterStreamDestroyFunc, destroy_stream_func_t, destroy_stream)
DIPU_REGISTRATION(diopiRegisterSynchronizeStreamFunc, sync_stream_func_t, sync_stream)
DIPU_REGISTRATION(diopiRegisterGetLastErrorFunc, get_last_error_string_func_t, get_last_error_string)
#undef DIPU_REGISTRATION
}

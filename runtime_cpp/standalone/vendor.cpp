// Opens a vendor library and finds its device functions.
#include "vendor.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

#include "abi.h"
#include "error.h"

namespace diopi::standalone {
namespace {

std::mutex load_mutex;
std::atomic<Vendor*> loaded{nullptr};  // never destroyed: kernels may use it until the process ends

// The vendor library leaves the runtime functions to us, so ours must be visible to it however we were opened.
void publish_own_symbols() {
    Dl_info self = {};
    if (dladdr(reinterpret_cast<void*>(&publish_own_symbols), &self) != 0) {
        dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
    }
}

void* open_library(const std::string& path) {
    publish_own_symbols();
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) throw Error("the vendor library cannot be opened: " + std::string(dlerror()));
    return library;
}

// The first form: initLibrary() registers the functions. The second: they are found by their names.
diopiDeviceApi_t classic_functions(void* library) {
    diopiDeviceApi_t api = registered_functions();
    const auto find = [library](auto& entry, const char* name) {
        if (entry == nullptr) entry = reinterpret_cast<std::decay_t<decltype(entry)>>(dlsym(library, name));
    };
    find(api.create_stream, "device_make_stream");
    find(api.destroy_stream, "device_destroy_stream");
    find(api.sync_stream, "device_synchronize_stream");
    find(api.malloc, "device_malloc");
    find(api.free, "device_free");
    find(api.memcpy_h2d_async, "device_memcpy_h2d_async");
    find(api.memcpy_d2h_async, "device_memcpy_d2h_async");
    find(api.memcpy_d2d_async, "device_memcpy_d2d_async");
    find(api.get_last_error_string, "diopiGetLastErrorString");
    return api;
}

diopiDeviceApi_t device_functions(void* library) {
    using GetDeviceApi = const diopiDeviceApi_t* (*)();
    const auto get_table = reinterpret_cast<GetDeviceApi>(dlsym(library, "diopiGetDeviceApi"));
    if (get_table == nullptr) return classic_functions(library);
    const diopiDeviceApi_t* table = get_table();
    diopiDeviceApi_t api = {};
    std::memcpy(&api, table, std::min<size_t>(table->size, sizeof api));  // an older table has fewer entries
    return api;
}

void require_classic(const diopiDeviceApi_t& api, const std::string& path) {
    const auto require_entry = [&path](bool there, const char* name, diopiError_t status) {
        if (!there)
            throw Error("'" + path + "' gives no device function '" + name + "': register it in initLibrary()", status);
    };
    require_entry(api.create_stream, "create_stream", diopiNoRegisteredStreamCreateFunction);
    require_entry(api.destroy_stream, "destroy_stream", diopiNoRegisteredStreamDestoryFunction);
    require_entry(api.sync_stream, "sync_stream", diopiNoRegisteredStreamSyncFunction);
    require_entry(api.malloc, "malloc", diopiNoRegisteredDeviceMemoryMallocFunction);
    require_entry(api.free, "free", diopiNoRegisteredDeviceMemoryFreeFunction);
    require_entry(api.memcpy_h2d_async, "memcpy_h2d_async", diopiNoRegisteredHost2DeviceMemoryCopyFunction);
    require_entry(api.memcpy_d2h_async, "memcpy_d2h_async", diopiNoRegisteredDevice2HostMemoryCopyFunction);
    require_entry(api.memcpy_d2d_async, "memcpy_d2d_async", diopiNoRegisteredDevice2DdeviceMemoryCopyFunction);
    require_entry(api.get_last_error_string, "get_last_error_string", diopiNoRegisteredGetLastErrorFunction);
}

}  // namespace

diopiDeviceApi_t& registered_functions() {
    static diopiDeviceApi_t functions = {};
    return functions;
}

Vendor::Vendor(const std::string& path) : path_(path), library_(open_library(path)), api_() {
    check_abi(library_, path);
    using InitLibrary = int32_t (*)();
    const auto init = reinterpret_cast<InitLibrary>(dlsym(library_, "initLibrary"));
    const int32_t status = init == nullptr ? 0 : init();
    api_ = device_functions(library_);
    require_classic(api_, path);
    check(status, "the vendor library cannot start");
}

void* Vendor::symbol(const char* name) const { return dlsym(library_, name); }

void Vendor::check(int32_t status, const char* what) const {
    if (status != 0) throw Error(std::string(what) + ": " + api_.get_last_error_string());
}

int32_t Vendor::current_device() const {
    int32_t device = 0;
    if (api_.get_device != nullptr) check(api_.get_device(&device), "the current device is not known");
    return device;
}

void Vendor::set_device(int32_t device) const {
    if (api_.set_device != nullptr) {
        check(api_.set_device(device), "the device cannot be chosen");
    } else if (device != 0) {
        throw Error("there is no device " + std::to_string(device) + ": '" + path_ + "' has one device");
    }
}

uint64_t Vendor::used_memory() const {
    if (api_.memory_info == nullptr) {
        throw Error("'" + path_ + "' has no device function 'memory_info', which tells how much memory is in use");
    }
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    check(api_.memory_info(current_device(), &free_bytes, &total_bytes),
          "the device does not say how much memory is in use");
    return total_bytes - free_bytes;
}

diopiStreamHandle_t Vendor::create_stream() const {
    diopiStreamHandle_t stream = nullptr;
    check(api_.create_stream(&stream), "no stream can be made");
    return stream;
}

void Vendor::synchronize(diopiStreamHandle_t stream) const {
    check(api_.sync_stream(stream), "the device reports a failure");
}

void* Vendor::allocate(uint64_t bytes) const {
    void* memory = api_.malloc(bytes);
    if (memory == nullptr)
        throw Error(std::string("device memory cannot be allocated: ") + api_.get_last_error_string());
    return memory;
}

diopiStreamHandle_t Vendor::transfer_stream() {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto [entry, fresh] = transfer_streams_.try_emplace(current_device(), nullptr);
    if (fresh) entry->second = create_stream();
    return entry->second;
}

// Copies go through a stream of their own, so the work of the other streams must be over first.
void Vendor::settle() const {
    if (api_.synchronize_device != nullptr) {
        check(api_.synchronize_device(current_device()), "the device reports a failure");
    }
}

void Vendor::write(void* device_memory, const void* source, uint64_t bytes) {
    if (bytes == 0) return;
    const diopiStreamHandle_t stream = transfer_stream();
    settle();
    check(api_.memcpy_h2d_async(stream, device_memory, source, bytes), "a copy to the device failed");
    synchronize(stream);
}

void Vendor::read(void* destination, const void* device_memory, uint64_t bytes) {
    if (bytes == 0) return;
    const diopiStreamHandle_t stream = transfer_stream();
    settle();
    check(api_.memcpy_d2h_async(stream, destination, device_memory, bytes), "a copy from the device failed");
    synchronize(stream);
}

void load_vendor(const std::string& path) {
    const std::lock_guard<std::mutex> lock(load_mutex);
    if (const Vendor* open = loaded.load()) {
        if (open->path() == path) return;
        throw Error("'" + open->path() + "' is open already: load '" + path + "' in another process");
    }
    loaded.store(new Vendor(path));
}

Vendor& vendor() {
    Vendor* open = loaded.load(std::memory_order_acquire);
    if (open == nullptr) throw Error("no vendor library is open: call standalone_load() first", diopiNotInited);
    return *open;
}

}  // namespace diopi::standalone

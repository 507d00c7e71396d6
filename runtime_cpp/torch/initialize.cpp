// The order in which the backend comes to life.
#include "initialize.h"

#include <c10/core/Allocator.h>

#include <deque>
#include <mutex>

#include "memory/allocator.h"
#include "device/device_api.h"
#include "device/guard.h"
#include "device/hooks.h"
#include "memory/host_allocator.h"
#include "interposer/interposer.h"
#include "library.h"
#include "memory/memory_check.h"
#include "profiler/profiler.h"
#include "registry.h"
#include "settings.h"
#include "device/vendor_library.h"

namespace dipu {
namespace {

void register_with_torch() {
    register_guard();
    register_hooks();
    c10::SetAllocator(c10::kPrivateUse1, &device_allocator());
    at::setHostAllocator(at::kPrivateUse1, &host_allocator());
    register_profiler();

    torch::Library& aten = new_library("aten", c10::DispatchKey::PrivateUse1);
    register_storage(aten);
    register_views(aten);
    register_copy(aten);
    register_recurrent(aten);
    register_differentiation();
    register_lazy_bits();
    register_autocast();
    register_fallback();
    register_interposer();
    register_nested();
    register_operators(aten);
}

void apply_settings() {
    set_control(settings().force_fallback, kForceFallback);
    if (settings().dump_level > 0) {
        set_control(settings().dump.empty() ? ".*" : settings().dump, kDump);
    }
    set_control(settings().compare, kCompare);
    set_control(settings().synchronize, kSynchronize);
    if (settings().check_memory) {
        start_memory_check();
    }
}

}  // namespace

torch::Library& new_library(const char* name_space, c10::DispatchKey key) {
    static auto& libraries = *new std::deque<torch::Library>;
    return libraries.emplace_back(torch::Library::IMPL, name_space, key, "torch_dipu", 0);
}

void initialize(const std::string& vendor_library) {
    static std::once_flag once;
    std::call_once(once, [&vendor_library] {
        load_vendor_library(vendor_library);
        load_device_api();
        register_with_torch();
        apply_settings();
    });
}

}  // namespace dipu

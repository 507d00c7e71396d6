// Finds, opens and checks the vendor library.
#include "vendor_library.h"

#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <unistd.h>

#include <mutex>

#include "abi.h"
#include "settings.h"

namespace dipu {
namespace {

struct Library {
    void* handle = nullptr;  // never closed: its functions are called until the process ends
    std::string path;
    std::mutex mutex;
};

Library& library() {
    static Library& value = *new Library;
    return value;
}

// The path of libtorch_dipu.so itself.
std::string own_path() {
    Dl_info info{};
    if (dladdr(reinterpret_cast<void*>(&load_vendor_library), &info) == 0 || info.dli_fname == nullptr) {
        return {};
    }
    return info.dli_fname;
}

// The vendor library leaves the functions of diopirt.h undefined; this library defines them. Python opened it with local
// scope, so its symbols are made global before the vendor library is opened.
void promote_own_symbols(const std::string& path) {
    void* const self = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
    TORCH_CHECK(self != nullptr, "dipu cannot make the symbols of ", path, " global: ", dlerror());
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

// C++ programs that were written for DIPU name this library, and it names the vendor's. Loaded here, while the vendor's
// is the loaded one of that name, both are found. Otherwise such a program does not load, and the linker says why.
void load_client_library(const std::string& own, void* vendor) {
    void* const found = dlopen("libdiopi_impl.so", RTLD_NOW | RTLD_NOLOAD);
    if (found == vendor) {
        dlopen((folder_of(own) + "client/libtorch_dipu_client.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    }
}

std::string search(const std::string& own, const std::string& installed) {
    for (const std::string& path : {settings().vendor_library, installed}) {
        if (!path.empty()) {
            return path;
        }
    }
    return folder_of(own) + "libdiopi_impl.so";
}

}  // namespace

void load_vendor_library(const std::string& installed) {
    Library& lib = library();
    const std::lock_guard<std::mutex> lock(lib.mutex);
    if (lib.handle != nullptr) {
        return;
    }
    const std::string own = own_path();
    const std::string path = search(own, installed);
    TORCH_CHECK(access(path.c_str(), R_OK) == 0, "there is no vendor library at ", path,
                "; build one with `make build` or name it in DIPU_VENDOR_LIBRARY");
    promote_own_symbols(own);
    void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    TORCH_CHECK(handle != nullptr, "the vendor library ", path, " does not load: ", dlerror());
    const std::string fault = check_abi([handle](const char* name) { return dlsym(handle, name); });
    if (!fault.empty()) {
        dlclose(handle);
        TORCH_CHECK(false, "the vendor library ", path, " ", fault);
    }
    lib.handle = handle;
    lib.path = path;
    load_client_library(own, handle);
}

bool vendor_library_loaded() noexcept { return library().handle != nullptr; }

const std::string& vendor_library_path() { return library().path; }

void* vendor_symbol(const char* name) noexcept {
    void* const handle = library().handle;
    return handle == nullptr ? nullptr : dlsym(handle, name);
}

}  // namespace dipu

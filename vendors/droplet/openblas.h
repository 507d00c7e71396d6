// What products and factorizations by OpenBLAS share.
#pragma once

#include <cblas.h>
#include <dlfcn.h>

#include <limits>

#include "core/error.h"

namespace diopi::launch {

// OpenBLAS is loaded when it is first needed, because it starts threads then, which a process that never uses the chip should
// not have. Only one of them works: the chip's threads share the work already, and OpenBLAS's own wait by spinning, so that on a
// busy machine two of them take ten times as long for the small matrices of the training models as one does.
inline void* openblas() {
    static void* const library = [] {
        void* const opened = dlopen(DROPLET_OPENBLAS, RTLD_NOW | RTLD_LOCAL);
        kernels::require(opened != nullptr, "OpenBLAS does not load: %s", opened == nullptr ? dlerror() : "");
        const auto set = reinterpret_cast<decltype(&scipy_openblas_set_num_threads)>(
            dlsym(opened, "scipy_openblas_set_num_threads"));
        kernels::require(set != nullptr, "%s is not OpenBLAS as scipy has it", DROPLET_OPENBLAS);
        set(1);
        return opened;
    }();
    return library;
}

// e.g. OPENBLAS(scipy_cblas_dgemm)(...); a call on the device comes after one of openblas() on the host, where it may fail.
#define OPENBLAS(function)                                                                             \
    [] {                                                                                               \
        static const auto found = reinterpret_cast<decltype(&function)>(dlsym(openblas(), #function)); \
        return found;                                                                                  \
    }()

inline blasint extent(int64_t value) {
    kernels::require(value >= 0 && value <= std::numeric_limits<blasint>::max(),
                     "a matrix of extent %lld is beyond what OpenBLAS takes", value);
    return static_cast<blasint>(value);
}

}  // namespace diopi::launch

// The host's part of a program whose kernels are compiled apart, by nvcc, while a host's compiler reads this: nvcc takes
// as long again for a host's part of its own. Here a kernel is the name that it has there.
#pragma once

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstdint>
#include <mutex>
#include <unordered_map>

extern "C" const char diopi_program_kernels[];  // what nvcc made of the same source; linked to the program

namespace diopi::launch::detail {

// The parameters must be those of launch/cuda.h, to the letter: they are part of the name.
template <class F>
void by_threads(int64_t, const F) {}
template <class F>
void by_teams(int64_t, const F) {}

struct DeviceCode {
    const void* kernel;
    bool starts_early;  // it waits for kernels before it
    cudaError_t error;
};

// Not inline: another program's kernels have the same names.
static DeviceCode looked_up(const void* kernel) {
    static const struct Kernels {
        cudaLibrary_t library{};
        cudaError_t error =
            cudaLibraryLoadData(&library, diopi_program_kernels, nullptr, nullptr, 0, nullptr, nullptr, 0);
        ~Kernels() { cudaLibraryUnload(library); }
    } kernels;
    cudaKernel_t found{};
    cudaFuncAttributes code{};
    cudaError_t error = kernels.error;
    Dl_info place{};
    if (error == cudaSuccess && (dladdr(kernel, &place) == 0 || place.dli_saddr != kernel))
        error = cudaErrorSymbolNotFound;
    if (error == cudaSuccess) error = cudaLibraryGetKernel(&found, kernels.library, place.dli_sname);
    if (error == cudaSuccess) error = cudaFuncGetAttributes(&code, found);
    return {found, code.ptxVersion >= 90 && code.binaryVersion >= 90, error};
}

static DeviceCode device_code(const void* kernel) {
    static std::mutex one_at_a_time;
    static std::unordered_map<const void*, DeviceCode> known;
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    const auto [place, is_new] = known.try_emplace(kernel);
    if (is_new || place->second.error != cudaSuccess) place->second = looked_up(kernel);
    return place->second;
}

}  // namespace diopi::launch::detail

// What a thread keeps of a library for each device.
#pragma once

#include <cuda_runtime.h>

#include <map>
#include <memory>
#include <type_traits>

#include "core/error.h"

namespace diopi::launch {

template <class T>
class ByDevice {
public:
    // That of the current device, made at its first use.
    T& current() {
        int device = 0;
        kernels::require(cudaGetDevice(&device) == cudaSuccess, "there is no current device");
        const auto found = by_device_.find(device);
        if (found != by_device_.end()) return found->second;
        kernels::require(cudaSetDevice(device) == cudaSuccess, "the current device does not start");  // in this thread
        return by_device_[device];
    }

private:
    std::map<int, T> by_device_;
};

inline constexpr char kCublas[] = "cuBLAS", kCublasLt[] = "cuBLASLt", kCudnn[] = "cuDNN", kCusolver[] = "cuSOLVER";

template <auto destroy>
struct Destroy {
    template <class H>
    void operator()(H handle) const {
        static_cast<void>(destroy(handle));
    }
};

template <class H, auto destroy>
using Owned = std::unique_ptr<std::remove_pointer_t<H>, Destroy<destroy>>;

// A library, or a descriptor that it makes, by its functions: they give zero where all is well.
template <class H, const char* name, auto create, auto destroy>
struct LibraryHandle : Owned<H, destroy> {
    LibraryHandle() {
        H handle = nullptr;
        kernels::require(static_cast<int>(create(&handle)) == 0, "%s gives no handle", name);
        this->reset(handle);
    }
};

// What was made of problems, by all that it depends on.
template <class Key, class Plan>
class PlanCache {
public:
    template <class Make>
    const Plan* cached(const Key& key, Make&& make) {
        const auto found = plans_.find(key);
        if (found != plans_.end()) return found->second.get();
        if (plans_.size() > kMostPlans) plans_.clear();
        return plans_.emplace(key, make()).first->second.get();
    }

private:
    static constexpr size_t kMostPlans = 4096;
    std::map<Key, std::unique_ptr<const Plan>> plans_;
};

}  // namespace diopi::launch

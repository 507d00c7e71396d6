// What a thread keeps of a library for each device.
#pragma once

#include <cuda_runtime.h>

#include <map>

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

}  // namespace diopi::launch

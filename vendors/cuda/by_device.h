// What a thread keeps of a library for each device.
#ifndef DIOPI_CUDA_BY_DEVICE_H_
#define DIOPI_CUDA_BY_DEVICE_H_

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
        return by_device_.try_emplace(device).first->second;
    }

private:
    std::map<int, T> by_device_;
};

}  // namespace diopi::launch

#endif  // DIOPI_CUDA_BY_DEVICE_H_

// The C functions about devices and faults.
#include <cstdio>

#include "chip.h"
#include "error.h"

using droplet::at_boundary;
using droplet::chip;
using droplet::require;

tangError_t tangGetDeviceCount(int32_t* count) {
    return at_boundary([&] {
        require(count != nullptr, tangErrorInvalidValue, "tangGetDeviceCount: the result pointer is null");
        *count = droplet::settings().devices;
        return tangSuccess;
    });
}

tangError_t tangSetDevice(int32_t device) {
    return at_boundary([&] {
        droplet::current_device_index() = chip().device(device).index();
        return tangSuccess;
    });
}

tangError_t tangGetDevice(int32_t* device) {
    return at_boundary([&] {
        require(device != nullptr, tangErrorInvalidValue, "tangGetDevice: the result pointer is null");
        *device = chip().current_device().index();
        return tangSuccess;
    });
}

tangError_t tangGetDeviceProperties(tangDeviceProperties_t* properties, int32_t device) {
    return at_boundary([&] {
        require(properties != nullptr, tangErrorInvalidValue, "tangGetDeviceProperties: the result pointer is null");
        *properties = {};
        properties->total_memory = chip().device(device).memory().capacity();
        std::snprintf(properties->name, sizeof properties->name, "droplet");
        properties->multi_processor_count = 1;
        properties->major = 1;
        return tangSuccess;
    });
}

tangError_t tangMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
    return at_boundary([&] {
        require(free_bytes != nullptr && total_bytes != nullptr, tangErrorInvalidValue,
                "tangMemGetInfo: a result pointer is null");
        const droplet::MemoryPool& memory = chip().current_device().memory();
        *free_bytes = memory.free_bytes();
        *total_bytes = memory.capacity();
        return tangSuccess;
    });
}

tangError_t tangDeviceSynchronize(void) {
    return at_boundary([&] {
        droplet::Device& device = chip().current_device();
        device.synchronize();
        device.throw_if_failed();
        return tangSuccess;
    });
}

tangError_t tangDeviceReset(void) {
    return at_boundary([&] {
        droplet::Device& device = chip().current_device();
        device.synchronize();
        device.clear_failure();
        chip().choose_launch_path();
        return tangSuccess;
    });
}

tangError_t tangIsAsync(int32_t* async) {
    return at_boundary([&] {
        require(async != nullptr, tangErrorInvalidValue, "tangIsAsync: the result pointer is null");
        *async = chip().settings().async ? 1 : 0;
        return tangSuccess;
    });
}

tangError_t tangSetFaultPlan(const char* plan) {
    return at_boundary([&] {
        require(plan != nullptr, tangErrorInvalidValue, "tangSetFaultPlan: the plan is null; give \"\" for none");
        chip().faults().set(plan);
        chip().choose_launch_path();
        return tangSuccess;
    });
}

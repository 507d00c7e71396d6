// The C functions that allocate memory, copy and fill it.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "chip.h"
#include "error.h"

using droplet::at_boundary;
using droplet::chip;
using droplet::Device;
using droplet::Error;
using droplet::require;

namespace {

std::string megabytes(size_t bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
    return text;
}

struct Copy {
    void* dst;
    const void* src;
    size_t bytes;
    std::chrono::microseconds delay;
};

void copy(const void* args) {
    const Copy& task = *static_cast<const Copy*>(args);
    if (task.delay.count() > 0) std::this_thread::sleep_for(task.delay);
    std::memmove(task.dst, task.src, task.bytes);
}

struct Fill {
    void* dst;
    int32_t value;
    size_t bytes;
};

void fill(const void* args) {
    const Fill& task = *static_cast<const Fill*>(args);
    std::memset(task.dst, task.value, task.bytes);
}

void require_allocated(const void* pointer, size_t bytes, const char* role) {
    const int32_t device = chip().addresses().device_of(pointer);
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    const auto block = chip().device(device).memory().block_of(address);
    if (!block || block->bytes - (address - block->base) < bytes) {
        throw Error(tangErrorInvalidValue,
                    std::string("the ") + role + " of " + std::to_string(bytes) +
                        " bytes is not inside one live allocation of device memory: check the size "
                        "and that the memory is not yet freed");
    }
}

// Whether the pointer is one of the device; throws when it is not what the copy's direction says.
bool on_device(const void* pointer, size_t bytes, bool expected, bool any, const char* role) {
    const bool device = chip().addresses().device_of(pointer) >= 0;
    if (!any && device != expected) {
        throw Error(tangErrorInvalidValue, std::string("the ") + role + " is " + (device ? "device" : "host") +
                                               " memory, but the direction of the copy says " +
                                               (expected ? "device" : "host"));
    }
    if (device) require_allocated(pointer, bytes, role);
    return device;
}

// Pageable memory is the caller's again when the call returns, so it cannot be left to a worker.
bool may_outlive_call(const void* pointer, bool device) {
    return device || chip().host_memory().block_of(pointer).has_value();
}

tangError_t copy_on(tangStream_t handle, void* dst, const void* src, size_t bytes, tangMemcpyKind kind) {
    if (bytes == 0) return tangSuccess;
    require(dst != nullptr && src != nullptr, tangErrorInvalidValue, "the source or the destination of a copy is null");
    const bool any = kind == tangMemcpyDefault;
    const bool to_device =
        on_device(dst, bytes, kind == tangMemcpyHostToDevice || kind == tangMemcpyDeviceToDevice, any, "destination");
    const bool from_device =
        on_device(src, bytes, kind == tangMemcpyDeviceToHost || kind == tangMemcpyDeviceToDevice, any, "source");
    const auto stream = chip().stream(handle);
    stream->device().throw_if_failed();
    const bool repeats = may_outlive_call(dst, to_device) && may_outlive_call(src, from_device);
    if (!repeats) stream->refuse_while_recording("host memory that is not pinned was copied");
    const Copy task = {tangDeviceAddress(dst), tangDeviceAddress(src), bytes, chip().faults().copy_delay()};
    stream->submit(droplet::Work::kernel, copy, &task, sizeof task);
    if (stream->async() && !repeats) {
        stream->synchronize();
        stream->device().throw_if_failed();
    }
    return tangSuccess;
}

}  // namespace

tangError_t tangMalloc(void** pointer, size_t bytes) {
    return at_boundary([&] {
        require(pointer != nullptr, tangErrorInvalidValue, "tangMalloc: the result pointer is null");
        *pointer = nullptr;
        Device& device = chip().current_device();
        if (bytes == 0) return tangSuccess;
        const bool fault = chip().faults().active() && chip().faults().next_malloc_fails();
        const auto block = fault ? std::nullopt : device.memory().allocate(bytes);
        if (!block) {
            throw Error(tangErrorMemoryAllocation, "device " + std::to_string(device.index()) +
                                                       " is out of memory: " + megabytes(bytes) + " were asked for, " +
                                                       megabytes(device.memory().free_bytes()) + " of " +
                                                       megabytes(device.memory().capacity()) + " are free, at most " +
                                                       megabytes(device.memory().largest_free_block()) +
                                                       " in one piece; free some or raise DROPLET_MEMORY_MB");
        }
        *pointer = reinterpret_cast<void*>(*block);
        return tangSuccess;
    });
}

tangError_t tangFree(void* pointer) {
    return at_boundary([&] {
        if (pointer == nullptr) return tangSuccess;
        const int32_t index = chip().addresses().device_of(pointer);
        require(index >= 0, tangErrorInvalidValue, "tangFree: the pointer is not device memory");
        Device& device = chip().device(index);
        device.synchronize();
        require(device.memory().release(reinterpret_cast<uintptr_t>(pointer)), tangErrorInvalidValue,
                "tangFree: no live allocation starts at the pointer; it is freed already or lies inside one");
        return tangSuccess;
    });
}

tangError_t tangHostAlloc(void** pointer, size_t bytes) {
    return at_boundary([&] {
        require(pointer != nullptr, tangErrorInvalidValue, "tangHostAlloc: the result pointer is null");
        *pointer = bytes == 0 ? nullptr : chip().host_memory().allocate(bytes);
        return tangSuccess;
    });
}

tangError_t tangFreeHost(void* pointer) {
    return at_boundary([&] {
        if (pointer == nullptr) return tangSuccess;
        for (int32_t device = 0; device < chip().device_count(); ++device) chip().device(device).synchronize();
        require(chip().host_memory().release(pointer), tangErrorInvalidValue,
                "tangFreeHost: the pointer does not come from tangHostAlloc or is freed already");
        return tangSuccess;
    });
}

tangError_t tangPointerGetAttributes(tangPointerAttributes_t* attributes, const void* pointer) {
    return at_boundary([&] {
        require(attributes != nullptr, tangErrorInvalidValue, "tangPointerGetAttributes: the result pointer is null");
        *attributes = {tangMemoryTypeUnregistered, -1, nullptr, 0};
        const int32_t device = chip().addresses().device_of(pointer);
        if (device >= 0) {
            attributes->type = tangMemoryTypeDevice;
            attributes->device = device;
            if (const auto block = chip().device(device).memory().block_of(reinterpret_cast<uintptr_t>(pointer))) {
                attributes->base = reinterpret_cast<void*>(block->base);
                attributes->allocation_bytes = block->bytes;
            }
        } else if (const auto block = chip().host_memory().block_of(pointer)) {
            *attributes = {tangMemoryTypeHost, -1, reinterpret_cast<void*>(block->base), block->bytes};
        }
        return tangSuccess;
    });
}

tangError_t tangMemcpyAsync(void* dst, const void* src, size_t bytes, tangMemcpyKind kind, tangStream_t stream) {
    return at_boundary([&] { return copy_on(stream, dst, src, bytes, kind); });
}

tangError_t tangMemcpy(void* dst, const void* src, size_t bytes, tangMemcpyKind kind) {
    return at_boundary([&] {
        const tangError_t status = copy_on(nullptr, dst, src, bytes, kind);
        const auto stream = chip().stream(nullptr);
        stream->synchronize();
        stream->device().throw_if_failed();
        return status;
    });
}

tangError_t tangMemcpyPeerAsync(void* dst, int32_t dst_device, const void* src, int32_t src_device, size_t bytes,
                                tangStream_t stream) {
    return at_boundary([&] {
        const droplet::AddressSpace& addresses = chip().addresses();
        if (bytes > 0) {
            require(addresses.device_of(dst) == chip().device(dst_device).index(), tangErrorInvalidValue,
                    "tangMemcpyPeerAsync: the destination is not memory of the device that the call names");
            require(addresses.device_of(src) == chip().device(src_device).index(), tangErrorInvalidValue,
                    "tangMemcpyPeerAsync: the source is not memory of the device that the call names");
        }
        return copy_on(stream, dst, src, bytes, tangMemcpyDeviceToDevice);
    });
}

tangError_t tangMemsetAsync(void* dst, int32_t value, size_t bytes, tangStream_t handle) {
    return at_boundary([&] {
        if (bytes == 0) return tangSuccess;
        on_device(dst, bytes, true, false, "destination");
        const auto stream = chip().stream(handle);
        stream->device().throw_if_failed();
        const Fill task = {tangDeviceAddress(dst), value, bytes};
        stream->submit(droplet::Work::kernel, fill, &task, sizeof task);
        return tangSuccess;
    });
}

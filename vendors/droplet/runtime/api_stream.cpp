// The C functions about streams, launches and events.
#include <algorithm>
#include <chrono>

#include "chip.h"
#include "error.h"

using droplet::at_boundary;
using droplet::chip;
using droplet::Error;
using droplet::require;

namespace {

constexpr int32_t kLeastPriority = 0;
constexpr int32_t kGreatestPriority = -2;

void fail_on_demand(const void*) {
    throw Error(tangErrorLaunchFailure, "a kernel failed on demand (DROPLET_FAULT or tangSetFaultPlan)");
}

tangError_t create_stream(tangStream_t* stream, int32_t priority) {
    require(stream != nullptr, tangErrorInvalidValue, "tangStreamCreate: the result pointer is null");
    *stream = chip().create_stream(chip().current_device(), std::clamp(priority, kGreatestPriority, kLeastPriority));
    return tangSuccess;
}

// A launch on a chip that is asynchronous, in error, or to fail on demand.
tangError_t launch_with_care(tangStream_t handle, tangKernel_t kernel, const void* args, size_t bytes) {
    const auto stream = chip().stream(handle);
    stream->device().throw_if_failed();
    const bool fault = chip().faults().active() && chip().faults().next_launch_fails();
    stream->submit(droplet::Work::kernel, fault ? fail_on_demand : kernel, args, bytes);
    if (!stream->async()) stream->device().throw_if_failed();
    return tangSuccess;
}

}  // namespace

tangError_t tangLaunch(tangStream_t stream, tangKernel_t kernel, const void* args, size_t bytes) {
    // The usual case costs a load and an indirect call; a kernel that throws here is run by nobody else.
    if (droplet::fast_launch.load(std::memory_order_relaxed)) {
        try {
            kernel(args);
            return tangSuccess;
        } catch (...) {
            return at_boundary([&] {
                const auto failing = chip().stream(stream);
                failing->device().execute(droplet::Work::kernel, [](const void*) { throw; }, nullptr);
                failing->device().throw_if_failed();
                return tangSuccess;
            });
        }
    }
    return at_boundary([&] { return launch_with_care(stream, kernel, args, bytes); });
}

void tangForRanges(int64_t n, int64_t nanoseconds, tangRange_t range, const void* args) {
    chip().threads().run(n, nanoseconds, range, args);
}

tangError_t tangStreamCreate(tangStream_t* stream) {
    return at_boundary([&] { return create_stream(stream, kLeastPriority); });
}

tangError_t tangStreamCreateWithPriority(tangStream_t* stream, uint32_t, int32_t priority) {
    return at_boundary([&] { return create_stream(stream, priority); });
}

tangError_t tangDeviceGetStreamPriorityRange(int32_t* least, int32_t* greatest) {
    return at_boundary([&] {
        static_cast<void>(chip());  // like every call, it fails in a forked process
        if (least != nullptr) *least = kLeastPriority;
        if (greatest != nullptr) *greatest = kGreatestPriority;
        return tangSuccess;
    });
}

tangError_t tangStreamGetPriority(tangStream_t stream, int32_t* priority) {
    return at_boundary([&] {
        require(priority != nullptr, tangErrorInvalidValue, "tangStreamGetPriority: the result pointer is null");
        *priority = chip().stream(stream)->priority();
        return tangSuccess;
    });
}

tangError_t tangStreamDestroy(tangStream_t handle) {
    return at_boundary([&] {
        require(handle != nullptr, tangErrorInvalidHandle, "tangStreamDestroy: the default stream cannot be destroyed");
        chip().remove_stream(handle)->synchronize();
        return tangSuccess;
    });
}

tangError_t tangStreamSynchronize(tangStream_t handle) {
    return at_boundary([&] {
        const auto stream = chip().stream(handle);
        stream->synchronize();
        stream->device().throw_if_failed();
        return tangSuccess;
    });
}

tangError_t tangStreamQuery(tangStream_t handle) {
    return at_boundary([&] {
        const auto stream = chip().stream(handle);
        if (!stream->idle()) return tangErrorNotReady;
        stream->device().throw_if_failed();
        return tangSuccess;
    });
}

tangError_t tangStreamWaitEvent(tangStream_t stream, tangEvent_t event, uint32_t) {
    return at_boundary([&] {
        chip().event(event)->block(*chip().stream(stream));
        return tangSuccess;
    });
}

tangError_t tangEventCreateWithFlags(tangEvent_t* event, uint32_t flags) {
    return at_boundary([&] {
        require(event != nullptr, tangErrorInvalidValue, "tangEventCreateWithFlags: the result pointer is null");
        *event = chip().create_event((flags & tangEventDisableTiming) == 0);
        return tangSuccess;
    });
}

tangError_t tangEventDestroy(tangEvent_t event) {
    return at_boundary([&] {
        chip().remove_event(event);
        return tangSuccess;
    });
}

tangError_t tangEventRecord(tangEvent_t event, tangStream_t handle) {
    return at_boundary([&] {
        const auto stream = chip().stream(handle);
        chip().event(event)->record(*stream);
        stream->device().throw_if_failed();
        return tangSuccess;
    });
}

tangError_t tangEventQuery(tangEvent_t event) {
    return at_boundary([&] { return chip().event(event)->ready() ? tangSuccess : tangErrorNotReady; });
}

tangError_t tangEventSynchronize(tangEvent_t event) {
    return at_boundary([&] {
        chip().event(event)->synchronize();
        return tangSuccess;
    });
}

tangError_t tangEventElapsedTime(float* milliseconds, tangEvent_t start, tangEvent_t end) {
    return at_boundary([&] {
        require(milliseconds != nullptr, tangErrorInvalidValue, "tangEventElapsedTime: the result pointer is null");
        const auto first = chip().event(start);
        const auto last = chip().event(end);
        require(first->timed() && last->timed(), tangErrorInvalidHandle,
                "tangEventElapsedTime: an event was created without timing");
        require(first->recorded() && last->recorded(), tangErrorInvalidHandle,
                "tangEventElapsedTime: an event was never recorded");
        const auto begin = first->time();
        const auto finish = last->time();
        if (!begin || !finish) return tangErrorNotReady;
        *milliseconds = std::chrono::duration<float, std::milli>(*finish - *begin).count();
        return tangSuccess;
    });
}

// A vendor whose unary float32 functions are right, but for the fault that FAULT names.
#include "host_vendor.h"

#include <diopi/device.h>

#include <array>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <future>
#include <stdexcept>
#include <thread>
#include <unistd.h>

namespace {

enum Fault {
    none,
    writes_nothing,
    writes_zeros,
    copies_input,
    drops_tail,
    ignores_strides,
    writes_behind,
    changes_input,
    returns_status,
    crashes,
    hangs,
    prints,
    leaks,
    exits,
    is_sanitized,
    zeroes_third,
    aborts,
    throws,
    recurses,
    opens_files,
    keeps_device_memory,
    shares_a_device,
    frees_elsewhere,
    reads_temporary,
    reads_output,
    fails_on_other_bytes,
    leaves_first
};

uint64_t device_memory_in_use = 0;

// Gives memory back on threads of its own, in turn: their caches of the heap take some of it before it is free.
class Freeing {
public:
    void give(void* memory) {
        Thread& next = threads_[turn_++ % threads_.size()];
        if (!next.thread.joinable()) next.thread = std::thread(&Thread::run, &next);
        std::promise<void> done;
        next.given.set_value({memory, &done});
        done.get_future().wait();
    }
    ~Freeing() {
        for (Thread& each : threads_) {
            if (!each.thread.joinable()) continue;
            each.given.set_value({nullptr, nullptr});
            each.thread.join();
        }
    }

private:
    struct Gift {
        void* memory;
        std::promise<void>* done;
    };
    struct Thread {
        std::promise<Gift> given;
        std::thread thread;

        void run() {
            for (;;) {
                const Gift gift = given.get_future().get();
                given = {};
                if (gift.done == nullptr) return;
                std::free(gift.memory);
                gift.done->set_value();
            }
        }
    };
    std::array<Thread, 4> threads_;
    size_t turn_ = 0;
};

Freeing& freeing() {
    static Freeing one;
    return one;
}

int32_t memory_info(int32_t, uint64_t* free_bytes, uint64_t* total_bytes) {
    *total_bytes = uint64_t{1} << 30;
    *free_bytes = *total_bytes - device_memory_in_use;
    return 0;
}

diopiDeviceApi_t device_api() {
    diopiDeviceApi_t api = {};
    api.size = sizeof api;
    api.version = DIOPI_DEVICE_API_VERSION;
    api.create_stream = host_vendor::create_stream;
    api.destroy_stream = host_vendor::accept_stream;
    api.sync_stream = host_vendor::accept_stream;
    api.malloc = host_vendor::allocate;
    api.free = host_vendor::release;
    api.memcpy_h2d_async = host_vendor::copy;
    api.memcpy_d2h_async = host_vendor::copy;
    api.memcpy_d2d_async = host_vendor::copy;
    api.get_last_error_string = host_vendor::last_error;
    api.memory_info = memory_info;
    return api;
}

struct View {
    explicit View(diopiConstTensorHandle_t tensor) {
        void* start = nullptr;
        diopiGetTensorData(const_cast<diopiTensorHandle_t>(tensor), &start);
        data = static_cast<float*>(start);
        diopiGetTensorShape(tensor, &sizes);
        diopiGetTensorStride(tensor, &strides);
        diopiGetTensorNumel(tensor, &numel);
    }
    float& operator[](int64_t position) const {
        int64_t offset = 0;
        for (int64_t dim = sizes.len - 1; dim >= 0; --dim) {
            offset += position % sizes.data[dim] * strides.data[dim];
            position /= sizes.data[dim];
        }
        return data[offset];
    }
    float* data;
    diopiSize_t sizes;
    diopiSize_t strides;
    int64_t numel = 0;
};

bool is_float32(diopiConstTensorHandle_t tensor) {
    diopiDtype_t dtype;
    diopiGetTensorDtype(tensor, &dtype);
    return dtype == diopi_dtype_float32;
}

// Deeper than any stack.
int depth_of(volatile int* level) {
    volatile char frame[4096];
    frame[0] = static_cast<char>(*level);
    volatile int next = *level + 1;
    return depth_of(&next) + frame[0];
}

// Of a temporary that nobody has written.
float first_of_temporary(diopiContextHandle_t ctx) {
    const int64_t count = 1;
    const diopiSize_t size = {&count, 1};
    diopiTensorHandle_t temporary = nullptr;
    if (diopiRequireTensor(ctx, &temporary, &size, nullptr, diopi_dtype_float32, diopi_device) != diopiSuccess)
        return 0;
    return View(temporary)[0];
}

template <class F>
diopiError_t unary(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input, F f) {
    if (!is_float32(input)) return diopiDtypeNotSupported;
    const View target(out), source(input);
    const int64_t count = FAULT == drops_tail ? target.numel - 1 : target.numel;
    if (FAULT == writes_nothing) return diopiSuccess;
    if (FAULT == returns_status) return diopiErrorOccurred;
    if (FAULT == crashes) std::raise(SIGSEGV);
    if (FAULT == hangs) sleep(1000);
    if (FAULT == exits) std::exit(0);
    if (FAULT == is_sanitized) {
        std::fputs("==7==\nSUMMARY: ThreadSanitizer: data race neg.cpp:7 in operator()\n", stderr);
        std::_Exit(66);
    }
    if (FAULT == prints && write(1, "noise", 5) != 5) return diopiErrorOccurred;
    if (FAULT == leaks && std::malloc(4321) == nullptr) return diopiErrorOccurred;
    if (FAULT == aborts) std::abort();
    if (FAULT == throws) throw std::runtime_error("no such kernel");
    const float read = FAULT == reads_temporary || FAULT == fails_on_other_bytes ? first_of_temporary(ctx) : 0;
    if (FAULT == fails_on_other_bytes && !std::isnan(read)) return diopiErrorOccurred;
    volatile int top = 0;
    if (FAULT == recurses && depth_of(&top) == 0) return diopiErrorOccurred;
    if (FAULT == opens_files && open("/dev/null", O_RDONLY) < 0) return diopiErrorOccurred;
    if (FAULT == frees_elsewhere) freeing().give(std::malloc(1000));
    if (FAULT == keeps_device_memory) device_memory_in_use += 4096;
    if (FAULT == shares_a_device) device_memory_in_use += device_memory_in_use + 512;  // another amount each time
    for (int64_t i = FAULT == leaves_first; i < count; ++i) {
        if (FAULT == writes_zeros)
            target[i] = 0;
        else if (FAULT == reads_temporary)
            target[i] = std::isnan(read) ? f(source[i]) : read;
        else if (FAULT == reads_output)
            target[i] = f(source[i]) + 0 * target[i];
        else if (FAULT == copies_input)
            target[i] = source[i];
        else if (FAULT == ignores_strides)
            target.data[i] = f(source.data[i]);
        else
            target[i] = f(source[i]);
    }
    const int64_t last = target.sizes.len ? target.sizes.data[target.sizes.len - 1] : 0;
    if (FAULT == zeroes_third && last >= 3 && target.numel) target[2] = 0;
    if (FAULT == writes_behind) target.data[target.numel] = 1;
    if (FAULT == changes_input && target.numel) source.data[0] += 1;
    return diopiSuccess;
}

}  // namespace

extern "C" {

const diopiDeviceApi_t* diopiGetDeviceApi(void) {
    static const diopiDeviceApi_t api = device_api();
    return &api;
}

diopiError_t diopiNeg(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    return unary(ctx, out, input, [](float x) { return -x; });
}

diopiError_t diopiExp(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    if (!is_float32(input)) return diopiDtypeNotSupported;
    const View target(out), source(input);
    for (int64_t i = 0; i < target.numel; ++i) target[i] = std::exp(source[i]);
    return diopiSuccess;
}

}  // extern "C"

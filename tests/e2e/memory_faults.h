// PLANT_MEMORY_FAULT(ctx, out, input) at the beginning of a kernel's host code: at its end the device makes the fault that
// DIOPI_MEMORY_FAULT names, as a loop with a wrong index would. `out` and `input` are float32 without gaps.
//
// The access itself stands where the macro does, so that a report names the kernel.
#pragma once

#include <diopi/diopirt_ext.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "core/tensor.h"
#include "core/workspace.h"

namespace memory_faults {

using Byte = volatile unsigned char;

inline bool chosen(const char* fault) {
    const char* name = std::getenv("DIOPI_MEMORY_FAULT");
    return name != nullptr && std::strcmp(name, fault) == 0;
}

struct Place {
    Byte* at;
    bool writes;
};

inline Byte* begin_of(diopiConstTensorHandle_t tensor) {
    return static_cast<Byte*>(diopi::kernels::required_view(tensor, "planted").data);
}

inline Byte* end_of(diopiConstTensorHandle_t tensor) {
    return begin_of(tensor) + diopi::kernels::required_view(tensor, "planted").numel * sizeof(float);
}

inline Byte* of_returned(diopiContextHandle_t ctx) {
    diopiTensorHandle_t temporary = nullptr;
    diopi::kernels::check(diopiRequireBuffer(ctx, &temporary, 40, diopi_device));
    Byte* const memory = begin_of(temporary);
    diopi::kernels::check(diopiReturnTensor(ctx, temporary));
    return memory;
}

// That of the output of the call before, which is freed; null in the first call.
inline Byte* of_freed(diopiConstTensorHandle_t out) {
    static Byte* last = nullptr;
    Byte* const freed = last;
    last = begin_of(out);
    return freed;
}

inline Place place(diopiContextHandle_t ctx, diopiConstTensorHandle_t out, diopiConstTensorHandle_t input) {
    if (chosen("read before")) return {begin_of(input) - 4, false};
    if (chosen("read behind")) return {end_of(input), false};
    if (chosen("read 600 bytes behind")) return {end_of(input) + 600, false};
    if (chosen("read 40 kB behind")) return {end_of(input) + 40960, false};
    if (chosen("read 40 kB before")) return {begin_of(input) - 40960, false};
    if (chosen("read after return")) return {of_returned(ctx), false};
    if (chosen("read after free")) return {of_freed(out), false};
    if (chosen("write before")) return {begin_of(out) - 4, true};
    if (chosen("write behind")) return {end_of(out), true};
    if (chosen("write after return")) return {of_returned(ctx), true};
    return {nullptr, false};
}

// A number that nobody wrote counts unless it is NaN.
inline void read_unwritten(diopiContextHandle_t ctx, diopiConstTensorHandle_t out) {
    const auto* fresh = static_cast<const float*>(diopi::kernels::workspace(ctx, sizeof(float)));
    auto* first = static_cast<float*>(diopi::kernels::required_view(out, "planted").data);
    diopi::kernels::for_each(ctx, 1, [=](int64_t) {
        if (!std::isnan(*fresh)) *first = *fresh + 3;
    });
}

template <class Access>
class AtEnd {
public:
    AtEnd(diopiContextHandle_t ctx, diopiConstTensorHandle_t out, diopiConstTensorHandle_t input, Access access)
        : ctx_(ctx),
          out_(out),
          input_(input),
          access_(access) {}
    ~AtEnd() noexcept(false) {
        if (chosen("read unwritten")) read_unwritten(ctx_, out_);
        const Place found = place(ctx_, out_, input_);
        if (found.at == nullptr) return;
        diopi::kernels::for_each(ctx_, 1, [access = access_, found](int64_t) { access(found.at, found.writes); });
    }

private:
    diopiContextHandle_t ctx_;
    diopiConstTensorHandle_t out_;
    diopiConstTensorHandle_t input_;
    Access access_;
};

}  // namespace memory_faults

#define PLANT_MEMORY_FAULT(ctx, out, input)   \
    const memory_faults::AtEnd planted_fault( \
        ctx, out, input, [](memory_faults::Byte* at, bool writes) { writes ? void(*at = 1) : void(*at); })

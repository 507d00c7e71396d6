// One byte per operator that turns its debug features on and off in a running process.
#pragma once

#include <c10/core/DispatchKeySet.h>

#include <atomic>
#include <cstdint>

#include "export.h"

namespace dipu {

// What the interposer does with an operator; the bits combine.
enum ControlBit : uint8_t {
    kDump = 1,         // print the arguments
    kCompare = 2,      // run on the CPU too, and compare
    kSynchronize = 4,  // wait for the device after the operator
    kForceFallback = 8 // run on the CPU only
};

// Two backend keys that no tensor ever carries: their boxed kernels serve a wrapper that redispatches to them.
inline constexpr c10::DispatchKeySet kFallback(c10::DispatchKey::PrivateUse2);
inline constexpr c10::DispatchKeySet kInterposer(c10::DispatchKey::PrivateUse3);

// How far a result may be from the CPU's, relative and absolute; nothing where the dtype alone decides.
struct Tolerance {
    double relative = -1;
    double absolute = -1;

    bool given() const { return relative >= 0; }
};

// What the schemas say of comparing an operator's results.
struct Judgement {
    Tolerance f16{};
    Tolerance bf16{};
    Tolerance f32{};
    Tolerance f64{};
    bool positions = false;  // results that are positions of elements, of which equal ones may stand for each other
    bool random = false;     // results that no two devices share
};

// Declared beside each wrapper: constinit OperatorControl add_Tensor_control{"add.Tensor"};
struct OperatorControl {
    const char* name;  // e.g. "add.Tensor", in the namespace aten
    Judgement judgement{};
    std::atomic<uint8_t> bits{0};
};

// The cold part of `intercepted`: false while the interposer itself runs the operator.
DIPU_API bool enter_interposer() noexcept;

// True when the wrapper must redispatch to kInterposer. One relaxed load when nothing is on.
inline bool intercepted(const OperatorControl& control) noexcept {
    if (control.bits.load(std::memory_order_relaxed) == 0) [[likely]] {
        return false;
    }
    return enter_interposer();
}

}  // namespace dipu

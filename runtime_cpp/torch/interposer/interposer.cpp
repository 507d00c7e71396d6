// One boxed kernel for all operators, reached through PrivateUse3, which no tensor carries.
#include "interposer.h"

#include <ATen/core/ivalue.h>

#include "comparison.h"
#include "device/device.h"
#include "dump.h"
#include "fallback.h"
#include "library.h"
#include "registry.h"
#include "wrapper/status.h"

namespace dipu {
namespace {

thread_local bool inside = false;

// While the interposer runs an operator, its wrapper must not come back here.
class Inside {
public:
    Inside() { inside = true; }
    ~Inside() { inside = false; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
};

}  // namespace

bool enter_interposer() noexcept { return !inside; }

void interpose_boxed(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const Inside guard;
    const std::string name = overload_name(op);
    const uint8_t bits = control_bits(name);
    if ((bits & kDump) != 0) {
        dump_arguments(op, *stack);
    }
    if ((bits & kForceFallback) != 0) {
        refuse("forced");
        fallback_boxed(op, stack);
        return;
    }
    // Random numbers differ between devices by design.
    if ((bits & kCompare) != 0 && !is_random(op) && !judgement_of(name).random) {
        run_compared(op, stack);
    } else {
        op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), stack);
    }
    if ((bits & kSynchronize) != 0) {
        synchronize_device(current_device());
    }
}

void register_interposer() {
    new_library("_", c10::DispatchKey::PrivateUse3)
        .fallback(torch::CppFunction::makeFromBoxedFunction<&interpose_boxed>());
}

}  // namespace dipu

// One boxed kernel for all operators, reached through PrivateUse3, which no tensor carries.
#include "interposer.h"

#include <ATen/core/ivalue.h>

#include <algorithm>
#include <atomic>

#include "comparison.h"
#include "device.h"
#include "dump.h"
#include "fallback.h"
#include "library.h"
#include "registry.h"
#include "settings.h"
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

std::atomic<int> dump_level{0};

int current_dump_level() {
    const int level = dump_level.load(std::memory_order_relaxed);
    return level == 0 ? settings().dump_level : level;
}

bool is_random(const c10::OperatorHandle& op) {
    const auto& tags = op.getTags();
    return std::find(tags.begin(), tags.end(), at::Tag::nondeterministic_seeded) != tags.end();
}

}  // namespace

bool enter_interposer() noexcept { return !inside; }

void set_dump_level(int level) { dump_level.store(level, std::memory_order_relaxed); }

void interpose_boxed(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const Inside guard;
    const std::string name = overload_name(op);
    const std::uint8_t bits = control_bits(name);
    const std::size_t arguments = op.schema().arguments().size();
    if ((bits & kDump) != 0) {
        dump_arguments(op, *stack, current_dump_level());
    }
    if ((bits & kForceFallback) != 0) {
        refuse("forced");
        fallback_boxed(op, stack);
        return;
    }
    // Random numbers differ between devices by design.
    const bool compare = (bits & kCompare) != 0 && !is_random(op);
    torch::jit::Stack written;  // the device's arguments: in-place results are read from them afterwards
    torch::jit::Stack reference;
    if (compare) {
        written.assign(stack->end() - static_cast<std::ptrdiff_t>(arguments), stack->end());
        reference = on_cpu(written);
    }
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), stack);
    if (compare) {
        compare_with_cpu(op, name, written, *stack, std::move(reference));
    }
    if ((bits & kSynchronize) != 0) {
        synchronize_device(current_device());
    }
}

void register_interposer() {
    new_library("_", c10::DispatchKey::PrivateUse3).fallback(torch::CppFunction::makeFromBoxedFunction<&interpose_boxed>());
}

}  // namespace dipu

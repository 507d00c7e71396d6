// The first use of the device in a process.
#include "use.h"

#include <c10/core/AutogradState.h>
#include <c10/util/Exception.h>
#include <pthread.h>
#include <torch/csrc/autograd/engine.h>

#include <mutex>

#include "device.h"
#include "device_api.h"

namespace dipu {

constinit std::atomic<bool> detail::used{false};

namespace {

std::atomic<bool> forked{false};
std::atomic<bool> counted_none{false};  // torch has asked before the first use

struct BackwardEngine : torch::autograd::Engine {
    // torch starts a backward thread for each device that the guard counts, once, at the first backward of a process and its
    // forked children. When that was before the first use of the device there were none to count, and they are started now.
    static void start_threads() {
        torch::autograd::Engine& engine = get_default_engine();
        if (!counted_none.load() && engine.*(&BackwardEngine::thread_pool_shared_) == nullptr) {
            return;  // no backward yet
        }
        engine.initialize_device_threads_pool();
        if ((engine.*(&BackwardEngine::device_ready_queues_)).size() < static_cast<std::size_t>(device_count())) {
            // A backward on the CPU that runs meanwhile may still use the pool that is replaced.
            static const auto& replaced = *new auto(engine.*(&BackwardEngine::thread_pool_shared_));
            static_cast<void>(replaced);
            (engine.*(&BackwardEngine::start_device_threads))();
        }
    }
};

// Where the calling thread does the work of the device, a backward stays in it, as on the CPU: torch would give it to the
// thread of a device, and wait.
void keep_backward_in_caller() {
    bool works = false;
    const auto asked = device_api().works_in_caller;
    if (asked != nullptr && asked(&works) == 0 && works) {
        c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
    }
}

}  // namespace

void detail::begin_use() {
    static std::mutex& mutex = *new std::mutex;
    const std::lock_guard<std::mutex> lock(mutex);
    if (used.load()) {
        return;
    }
    const int status = pthread_atfork(nullptr, nullptr, [] { forked.store(true); });
    TORCH_CHECK(status == 0, "dipu cannot watch for forks (status ", status, ")");
    used.store(true);
    BackwardEngine::start_threads();
    keep_backward_in_caller();
}

c10::DeviceIndex devices_in_use() noexcept {
    if (!detail::used.load()) {
        counted_none.store(true);
    }
    return device_in_use() ? device_count() : c10::DeviceIndex{0};
}

bool device_in_use() noexcept { return detail::used.load() && !forked.load(); }

bool in_bad_fork() noexcept { return forked.load(); }

}  // namespace dipu

// A key in the store, for which a thread of each rank looks.
#include "failure_signal.h"

#include <torch/csrc/distributed/c10d/Utils.hpp>

namespace dipu::distributed {
namespace {

constexpr const char* kKey = "a rank has failed";
constexpr std::chrono::seconds kPause{1};

struct Current {
    std::mutex mutex;
    std::weak_ptr<FailureSignal> signal;
};

Current& current() {
    static Current* const kept = new Current;  // threads outlive static objects
    return *kept;
}

std::shared_ptr<FailureSignal> of_now() {
    const std::lock_guard<std::mutex> lock(current().mutex);
    return current().signal.lock();
}

}  // namespace

std::shared_ptr<FailureSignal> FailureSignal::of_process(const c10::intrusive_ptr<c10d::Store>& store, int rank) {
    if (!records_calls() || !c10d::getCvarBool({"TORCH_FR_DUMP_ON_TIMEOUT", "TORCH_NCCL_DUMP_ON_TIMEOUT"}, true)) {
        return nullptr;
    }
    const std::lock_guard<std::mutex> lock(current().mutex);
    if (!current().signal.expired()) {
        return nullptr;
    }
    auto signal = std::make_shared<FailureSignal>(store, rank);
    current().signal = signal;
    return signal;
}

void FailureSignal::end() {
    if (const std::shared_ptr<FailureSignal> signal = of_now()) {
        signal->stop();
    }
}

void FailureSignal::fail() {
    const std::shared_ptr<FailureSignal> signal = of_now();
    if (signal == nullptr || signal->written_.test_and_set()) {
        return;
    }
    try {
        signal->store_->set(kKey, std::vector<uint8_t>{1});
    } catch (const std::exception&) {
        // The rank that holds the store is gone, and with it the way to the others.
    }
    write_flight_record(signal->rank_);
}

// The store is a connection of its own: others wait in theirs.
FailureSignal::FailureSignal(const c10::intrusive_ptr<c10d::Store>& store, int rank)
    : store_(store->clone()),
      rank_(rank),
      thread_([this] { run(); }) {}

void FailureSignal::run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stopped_.wait_for(lock, kPause, [this] { return stopping_; })) {
        lock.unlock();
        try {
            if (store_->check({kKey})) {
                if (!written_.test_and_set()) {
                    write_flight_record(rank_);
                }
                return;
            }
        } catch (const std::exception&) {
            return;  // the store is gone
        }
        lock.lock();
    }
}

void FailureSignal::stop() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        stopping_ = true;
    }
    stopped_.notify_all();
    if (thread_.joinable()) {
        thread_.join();
    }
}

}  // namespace dipu::distributed

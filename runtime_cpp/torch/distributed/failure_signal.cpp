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
    std::shared_future<void> record;  // the last one that was begun
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
    std::shared_future<void> record;
    {
        const std::lock_guard<std::mutex> lock(current().mutex);
        record = current().record;
    }
    if (record.valid()) {
        record.wait();
    }
}

void FailureSignal::fail() {
    const std::shared_ptr<FailureSignal> signal = of_now();
    if (signal == nullptr || signal->asked_.test_and_set()) {
        return;
    }
    try {
        signal->store_->set(kKey, std::vector<uint8_t>{1});
    } catch (const std::exception&) {
        // The rank that holds the store is gone, and with it the way to the others.
    }
    signal->write();
}

// The store is a connection of its own: others wait in theirs.
FailureSignal::FailureSignal(const c10::intrusive_ptr<c10d::Store>& store, int rank)
    : store_(store->clone()),
      rank_(rank),
      thread_([this] { run(); }) {}

void FailureSignal::write() {
    const int limit =
        c10d::getCvarInt({"TORCH_FR_WAIT_TIMEOUT_DUMP_MILSEC", "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC"}, 15000);
    std::shared_future<void> record;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (stopping_ || written_) {
            return;
        }
        written_ = true;
        const std::lock_guard<std::mutex> of_process(current().mutex);
        record = current().record = write_flight_record(rank_);
    }
    if (record.wait_for(std::chrono::milliseconds(limit)) != std::future_status::ready) {
        TORCH_WARN("dicl: the flight record took more than ", limit,
                   " ms to write, and is written beside what follows");
    }
}

void FailureSignal::run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stopped_.wait_for(lock, kPause, [this] { return stopping_; })) {
        lock.unlock();
        try {
            if (store_->check({kKey})) {
                write();
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

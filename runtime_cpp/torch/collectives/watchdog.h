// Looks after launched work of one process group, and ends what is late or has failed.
//
// Tensors may belong to Python: they are let go by threads that make calls, and not by its own.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "device_work.h"

namespace dipu::collectives {

class Watchdog {
public:
    // `abort` ends the work of all of the group's communicators; from the watchdog's thread, too.
    explicit Watchdog(std::function<void()> abort);
    // After stop().
    ~Watchdog() = default;
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;

    void add(const DeviceWorkPtr& work);  // and lets go what is over
    const std::shared_ptr<GroupFailure>& failure() const { return failure_; }
    // Ends all work, and the group with it, with its first error, which is `error` if it had none.
    void fail(const std::exception_ptr& error, bool tell = false);
    // Looks now for work that has failed.
    void look();
    // Waits for all work but receives that nobody waits for, at most until it is late, and ends; true if it aborted receives.
    bool stop();

private:
    void run();
    // Without the lock: a vendor's call may wait.
    void look_at(const DeviceWorkPtr& work, bool by_time);
    void let_go();

    std::function<void()> abort_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<DeviceWorkPtr> works_;
    std::deque<DeviceWorkPtr> over_;
    const std::shared_ptr<GroupFailure> failure_ = std::make_shared<GroupFailure>();
    bool stopping_ = false;
    int watch_;
    std::thread thread_;  // last: it uses all of the above
};

}  // namespace dipu::collectives

// The thread that looks, ten times a second.
#include "watchdog.h"

#include <algorithm>
#include <utility>

#include "device/async_failure.h"
#include "distributed/failure_signal.h"

namespace dipu::collectives {
namespace {

constexpr std::chrono::milliseconds kPause{100};
constexpr std::chrono::milliseconds kPauseAtTheEnd{2};

}  // namespace

Watchdog::Watchdog(std::function<void()> abort)
    : abort_(std::move(abort)),
      watch_(watch_async_failures([this] { look(); })),
      thread_([this] { run(); }) {}

void Watchdog::add(const DeviceWorkPtr& work) {
    std::deque<DeviceWorkPtr> over;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        works_.push_back(work);
        over.swap(over_);
    }
    if (const std::exception_ptr error = failure_->error()) {
        work->fail(error);  // the group failed while it was launched
    }
}

void Watchdog::fail(const std::exception_ptr& error, bool tell) {
    const std::exception_ptr first = failure_->set(error, tell);
    std::deque<DeviceWorkPtr> ended;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        ended = works_;  // they stay here until their memory is free
    }
    for (const DeviceWorkPtr& work : ended) {
        work->fail(first);
    }
    abort_();
}

void Watchdog::look() {
    std::deque<DeviceWorkPtr> works;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        works = works_;
    }
    bool any_over = false;
    for (const DeviceWorkPtr& work : works) {
        look_at(work, false);
        if (work->ended()) {  // so that a later failure is not taken for its own
            work->let_go();
            any_over = true;
        }
    }
    if (any_over) {
        const std::lock_guard<std::mutex> lock(mutex_);
        let_go();  // whoever waits often would look at all of them each time
    }
}

// With the lock held; a thread that adds work gets those that are let go.
void Watchdog::let_go() {
    std::deque<DeviceWorkPtr> rest;
    for (DeviceWorkPtr& work : works_) {
        (work->is_let_go() ? over_ : rest).push_back(std::move(work));
    }
    works_ = std::move(rest);
}

void Watchdog::look_at(const DeviceWorkPtr& work, bool by_time) {
    if (work->settled()) {
        return;
    }
    std::string why;
    for (const CommunicatorPtr& communicator : work->communicators()) {
        if (why.empty()) {
            why = communicator->failure();
        }
    }
    const bool late = by_time && why.empty() && work->late();
    if (late) {
        why = "timed out after " + std::to_string(work->facts().timeout.count()) + " ms";
    }
    if (why.empty() || !work->isSuccess()) {
        return;
    }
    distributed::FailureSignal::fail();  // before: the process may end when it is told
    fail(work->failure(why), true);
}

void Watchdog::run() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
        changed_.wait_for(lock, stopping_ ? kPauseAtTheEnd : kPause);
        std::deque<DeviceWorkPtr> works = works_;
        lock.unlock();
        for (const DeviceWorkPtr& work : works) {
            try {
                look_at(work, true);
                if (work->ended()) {
                    work->let_go();
                } else if (!work->isSuccess() && table()->comm_abort == nullptr) {
                    // It may still write its memory at any time, which nobody can end: that memory is lost.
                    static_cast<void>(new DeviceWorkPtr(work));
                    work->let_go();
                }
            } catch (...) {
                // The vendor cannot tell: the work's own calls fail as well, in threads that can.
                fail(std::current_exception());
                work->let_go();
            }
        }
        lock.lock();
        let_go();
        for (DeviceWorkPtr& work : works) {
            if (work.use_count() == 1) {  // another thread has let it go
                over_.push_back(std::move(work));
            }
        }
        works.clear();
        if (stopping_ && works_.empty()) {
            return;
        }
    }
}

bool Watchdog::stop() {
    stop_watching(watch_);
    std::deque<DeviceWorkPtr> unread;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        stopping_ = true;
        std::copy_if(works_.begin(), works_.end(), std::back_inserter(unread), [](const DeviceWorkPtr& work) {
            return work->facts().type == c10d::OpType::RECV && !work->waited();
        });
    }
    for (const DeviceWorkPtr& work : unread) {
        work->abort();
    }
    changed_.notify_all();
    thread_.join();
    over_.clear();
    return !unread.empty();
}

}  // namespace dipu::collectives

// Keeps one failure for the next caller.
#include "async_failure.h"

#include <map>
#include <mutex>
#include <utility>

namespace dipu {

std::atomic<bool> may_have_async_failure = false;

namespace {

struct Failures {
    std::mutex mutex;
    std::exception_ptr error;
    std::mutex watching;  // while watches are asked, which may report
    std::map<int, std::function<void()>> watches;
    int next_watch = 0;
    std::atomic<bool> watched = false;
};

Failures& failures() {
    static Failures* const kept = new Failures;  // threads outlive static objects
    return *kept;
}

// With the lock.
void set_error(const std::exception_ptr& error) {
    failures().error = std::move(error);
    may_have_async_failure = failures().watched || failures().error != nullptr;
}

}  // namespace

int watch_async_failures(std::function<void()> look) {
    const std::lock_guard<std::mutex> lock(failures().watching);
    failures().watches[failures().next_watch] = std::move(look);
    failures().watched = true;
    may_have_async_failure = true;
    return failures().next_watch++;
}

void stop_watching(int watch) {
    const std::lock_guard<std::mutex> watching(failures().watching);
    failures().watches.erase(watch);
    failures().watched = !failures().watches.empty();
    const std::lock_guard<std::mutex> lock(failures().mutex);
    set_error(failures().error);
}

void set_async_failure(const std::exception_ptr& error) {
    const std::lock_guard<std::mutex> lock(failures().mutex);
    if (failures().error == nullptr) {
        set_error(error);
    }
}

void tell_async_failure(const std::exception_ptr& error) {
    const std::lock_guard<std::mutex> lock(failures().mutex);
    if (failures().error == error) {
        set_error(nullptr);
    }
}

void raise_async_failure() {
    {
        const std::lock_guard<std::mutex> watching(failures().watching);
        for (const auto& [watch, look] : failures().watches) {
            look();
        }
    }
    std::exception_ptr error;
    {
        const std::lock_guard<std::mutex> lock(failures().mutex);
        error = failures().error;
        set_error(nullptr);
    }
    if (error != nullptr) {
        std::rethrow_exception(error);
    }
}

}  // namespace dipu

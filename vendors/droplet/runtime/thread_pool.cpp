// Shares the indices of a loop.
#include "thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>

namespace droplet {
namespace {

using Clock = std::chrono::steady_clock;
using Nanoseconds = std::chrono::duration<double, std::nano>;

// Less than this is done before others wake.
constexpr Nanoseconds kWorthSharing{20'000};
// Where nobody knows what an index takes, the caller begins alone, and looks after this time.
constexpr Nanoseconds kAlone{3'000};
// So long a thread looks out for what others do before it sleeps: to be woken takes longer than many a loop.
constexpr Nanoseconds kAwake{100'000};
// How long a loop that must be shared waits for a second thread; all may be at work elsewhere.
constexpr std::chrono::milliseconds kPatience{10};
// Each takes a part so small that the last ones end at about the same time.
constexpr int64_t kPartsPerThread = 8;

// Returns when done() is true, or after kAwake.
template <class Done>
void look_out(Done&& done) {
    constexpr int kLooks = 100;  // between which no other thread gets the processor
    const auto start = Clock::now();
    do {
        for (int look = 0; look < kLooks; ++look) {
            if (done()) return;
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
        }
        std::this_thread::yield();
    } while (Clock::now() - start < kAwake);
}

}  // namespace

struct ThreadPool::Loop {
    const int64_t n;
    const tangRange_t range;
    const void* const args;
    const int64_t part;  // indices that a thread takes at a time
    std::atomic<int64_t> next;

    // The rest belongs to the pool's mutex.
    std::atomic<int32_t> helpers{0};  // may be read without it
    bool joined = false;              // by a helper
    std::condition_variable changed;  // `joined` became true, or `helpers` zero
    int64_t failed = INT64_MAX;    // the first index of the part that threw
    std::exception_ptr failure;

    // The indices [done, count) of the loop.
    Loop(int64_t done, int64_t count, tangRange_t body, const void* arguments, int64_t parts)
        : n(count),
          range(body),
          args(arguments),
          part(std::max<int64_t>((count - done) / parts, 1)),
          next(done) {}

    bool open() const { return next.load(std::memory_order_relaxed) < n; }

    int64_t take() { return next.fetch_add(part, std::memory_order_relaxed); }

    // Begins with a part that is taken already.
    void work(int64_t begin, std::mutex& mutex) {
        for (; begin < n; begin = take()) {
            try {
                range(args, begin, std::min(begin + part, n));
            } catch (...) {
                fail(mutex, begin);
                return;
            }
        }
    }

    // Parts are taken in order, so all before this one run or have run: which failure is kept does not depend on timing.
    void fail(std::mutex& mutex, int64_t begin) {
        next.store(n, std::memory_order_relaxed);
        const std::lock_guard<std::mutex> lock(mutex);
        if (begin > failed) return;
        failed = begin;
        failure = std::current_exception();
    }
};

void ThreadPool::run(int64_t n, int64_t nanoseconds, tangRange_t range, const void* args) {
    if (n <= 0) return;
    if (threads_ == 1 || n == 1) return range(args, 0, n);
    if (!share_all_ && nanoseconds == 0) return probe(n, range, args);
    if (!share_all_ && Nanoseconds(static_cast<double>(n) * static_cast<double>(nanoseconds)) < kWorthSharing) {
        return range(args, 0, n);
    }
    share(Loop(0, n, range, args, threads_ * kPartsPerThread));
}

void ThreadPool::probe(int64_t n, tangRange_t range, const void* args) {
    const auto start = Clock::now();
    int64_t done = 0;
    for (int64_t step = 1; done < n; step *= 2) {
        const int64_t end = done + std::min(step, n - done);
        range(args, done, end);
        done = end;
        const Nanoseconds taken = Clock::now() - start;
        if (taken < kAlone) continue;
        const int64_t rest = n - done;
        if (taken * (static_cast<double>(rest) / static_cast<double>(done)) >= kWorthSharing) {
            share(Loop(done, n, range, args, threads_ * kPartsPerThread));
        } else if (rest > 0) {
            range(args, done, n);
        }
        return;
    }
}

void ThreadPool::share(Loop&& loop) {
    const int64_t begin = loop.take();
    std::unique_lock<std::mutex> lock(mutex_);
    start_workers();
    loops_.push_back(&loop);
    opened_loops_.fetch_add(1, std::memory_order_relaxed);
    opened_.notify_all();
    if (share_all_) loop.changed.wait_for(lock, kPatience, [&loop] { return loop.joined; });
    lock.unlock();
    loop.work(begin, mutex_);
    lock.lock();
    loops_.remove(&loop);
    lock.unlock();
    const auto done = [&loop] { return loop.helpers.load(std::memory_order_relaxed) == 0; };
    look_out(done);
    lock.lock();
    loop.changed.wait(lock, done);
    if (loop.failure) std::rethrow_exception(loop.failure);
}

// They run until the process ends, as the pool does. Where the system gives fewer threads, those do the work.
void ThreadPool::start_workers() {
    try {
        for (; workers_ < threads_ - 1; ++workers_) std::thread([this] { serve(); }).detach();
    } catch (const std::system_error&) {
        return;
    }
}

void ThreadPool::serve() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
        Loop* loop = open_loop();
        if (loop == nullptr) {
            const int64_t seen = opened_loops_.load(std::memory_order_relaxed);
            lock.unlock();
            look_out([&] { return opened_loops_.load(std::memory_order_relaxed) != seen; });
            lock.lock();
        }
        opened_.wait(lock, [&] { return (loop = open_loop()) != nullptr; });
        const int64_t begin = loop->take();
        ++loop->helpers;
        loop->joined = true;
        if (share_all_) loop->changed.notify_one();
        lock.unlock();
        loop->work(begin, mutex_);
        lock.lock();
        if (--loop->helpers == 0) loop->changed.notify_one();  // under the lock: the loop ends when its owner gets it
    }
}

ThreadPool::Loop* ThreadPool::open_loop() {
    const auto found = std::find_if(loops_.begin(), loops_.end(), [](const Loop* loop) { return loop->open(); });
    return found == loops_.end() ? nullptr : *found;
}

}  // namespace droplet

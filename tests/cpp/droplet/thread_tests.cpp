// Tests of the threads that share a kernel's loops; each holds for any DROPLET_THREADS, in both modes.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "tang_runtime.h"

namespace {

using std::chrono::microseconds;

int configured_threads() {
    const char* text = std::getenv("DROPLET_THREADS");
    return text == nullptr ? 1 : std::atoi(text);
}

// A kernel with one loop, whose index i takes `cost`, counts itself in seen[i], and may throw or start a loop of its own.
struct Sweep {
    int64_t n;
    microseconds cost;
    std::atomic<int32_t>* seen;
    std::set<std::thread::id>* threads = nullptr;
    std::atomic_flag* lock = nullptr;
    int64_t throws_from = INT64_MAX;
    const Sweep* inner = nullptr;
    int64_t nanoseconds = 0;  // that an index is said to take
};

void sweep_range(const void* args, int64_t begin, int64_t end) {
    const Sweep& sweep = *static_cast<const Sweep*>(args);
    for (int64_t i = begin; i < end; ++i) {
        if (i >= sweep.throws_from) throw std::runtime_error("index " + std::to_string(i) + " is at fault");
        if (sweep.cost.count() > 0) std::this_thread::sleep_for(sweep.cost);
        if (sweep.inner != nullptr) tangForRanges(sweep.inner->n, sweep.inner->nanoseconds, sweep_range, sweep.inner);
        sweep.seen[i].fetch_add(1, std::memory_order_relaxed);
        if (sweep.threads == nullptr) continue;
        while (sweep.lock->test_and_set(std::memory_order_acquire)) std::this_thread::yield();
        sweep.threads->insert(std::this_thread::get_id());
        sweep.lock->clear(std::memory_order_release);
    }
}

void sweep(const void* args) {
    const Sweep& sweep = *static_cast<const Sweep*>(args);
    tangForRanges(sweep.n, sweep.nanoseconds, sweep_range, args);
}

class Counts {
public:
    explicit Counts(int64_t n) : seen_(static_cast<size_t>(n)) {}
    std::atomic<int32_t>* data() { return seen_.data(); }
    int64_t size() const { return static_cast<int64_t>(seen_.size()); }
    bool all(int32_t times) const {
        for (const auto& count : seen_) {
            if (count.load(std::memory_order_relaxed) != times) return false;
        }
        return true;
    }

private:
    std::vector<std::atomic<int32_t>> seen_;
};

tangError_t launched(tangStream_t stream, const Sweep& work) { return tangLaunch(stream, sweep, &work, sizeof work); }

void each_index_runs_once() {
    for (const int64_t n : {0, 1, 2, 7, 1000, 4097}) {
        for (const microseconds cost : {microseconds(0), microseconds(3)}) {
            Counts counts(n);
            CHECK(launched(nullptr, {n, cost, counts.data()}) == tangSuccess);
            CHECK(tangDeviceSynchronize() == tangSuccess);
            CHECK(counts.all(1));
        }
    }
}

void long_loops_are_shared_and_short_ones_are_not() {
    std::set<std::thread::id> threads;
    std::atomic_flag lock = ATOMIC_FLAG_INIT;
    bool alone = false;  // a busy machine can make any loop a long one, but not every time
    for (int attempt = 0; attempt < 1000 && !alone; ++attempt) {
        threads.clear();
        Counts few(8);
        CHECK(launched(nullptr, {8, microseconds(0), few.data(), &threads, &lock}) == tangSuccess);
        CHECK(tangDeviceSynchronize() == tangSuccess);
        alone = threads.size() == 1;
    }
    CHECK(alone);
    threads.clear();
    Counts many(64);
    CHECK(launched(nullptr, {64, microseconds(5000), many.data(), &threads, &lock}) == tangSuccess);
    CHECK(tangDeviceSynchronize() == tangSuccess);
    CHECK(many.all(1));
    CHECK(static_cast<int>(threads.size()) == configured_threads());
    for (const int64_t said : {1, 1'000'000}) {
        threads.clear();
        Sweep work{64, microseconds(5000), many.data(), &threads, &lock};
        work.nanoseconds = said;  // and believed
        CHECK(launched(nullptr, work) == tangSuccess);
        CHECK(tangDeviceSynchronize() == tangSuccess);
        CHECK(static_cast<int>(threads.size()) == (said == 1 ? 1 : configured_threads()));
    }
}

void loops_may_be_nested() {
    Counts outer(16), inner(50);
    const Sweep within{50, microseconds(20), inner.data()};
    Sweep work{16, microseconds(0), outer.data()};
    work.inner = &within;
    CHECK(launched(nullptr, work) == tangSuccess);
    CHECK(tangDeviceSynchronize() == tangSuccess);
    CHECK(outer.all(1) && inner.all(16));
}

void loops_of_many_callers_do_not_mix() {
    constexpr int kCallers = 4, kRounds = 10;
    Counts counts(kCallers * 200);
    std::vector<std::thread> callers;
    for (int caller = 0; caller < kCallers; ++caller) {
        callers.emplace_back([&counts, caller] {
            CHECK(tangSetDevice(caller % 2) == tangSuccess);
            tangStream_t stream = nullptr;
            CHECK(tangStreamCreate(&stream) == tangSuccess);
            for (int round = 0; round < kRounds; ++round) {
                CHECK(launched(stream, {200, microseconds(5), counts.data() + caller * 200}) == tangSuccess);
            }
            CHECK(tangStreamDestroy(stream) == tangSuccess);
        });
    }
    for (std::thread& caller : callers) caller.join();
    CHECK(counts.all(kRounds));
}

// Indices from 40 on throw, whoever runs them: it is always the first of them that is reported, as one thread would.
void the_first_index_that_throws_is_reported() {
    for (int round = 0; round < 20; ++round) {
        Counts counts(200);
        Sweep work{200, microseconds(50), counts.data()};
        work.throws_from = 40;
        const tangError_t status = launched(nullptr, work);
        CHECK(tangDeviceSynchronize() == tangErrorLaunchFailure);
        CHECK(status == tangErrorLaunchFailure || status == tangSuccess);
        CHECK_SAYS(tangGetLastErrorMessage(), "index 40 is at fault");
        for (int64_t i = 0; i < 40; ++i) CHECK(counts.data()[i].load() == 1);
        CHECK(tangDeviceReset() == tangSuccess);
    }
    Counts counts(200);
    CHECK(launched(nullptr, {200, microseconds(50), counts.data()}) == tangSuccess);
    CHECK(tangDeviceSynchronize() == tangSuccess);
    CHECK(counts.all(1));
}

// The child must not wait for threads that it does not have, and the parent's go on.
void a_fork_leaves_the_threads_to_the_parent() {
    Counts counts(100);
    const Sweep work{100, microseconds(100), counts.data()};
    CHECK(launched(nullptr, work) == tangSuccess);
    CHECK(tangDeviceSynchronize() == tangSuccess);
    // A child of AddressSanitizer's waits for ever for the locks of its allocator that threads hold while it is made.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const pid_t child = fork();
    if (child == 0) _exit(launched(nullptr, work) == tangErrorInitialization ? 0 : 1);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(launched(nullptr, work) == tangSuccess);
    CHECK(tangDeviceSynchronize() == tangSuccess);
    CHECK(counts.all(2));
}

constexpr NamedTest kTests[] = {
    {"each_index_runs_once", each_index_runs_once},
    {"long_loops_are_shared_and_short_ones_are_not", long_loops_are_shared_and_short_ones_are_not},
    {"loops_may_be_nested", loops_may_be_nested},
    {"loops_of_many_callers_do_not_mix", loops_of_many_callers_do_not_mix},
    {"the_first_index_that_throws_is_reported", the_first_index_that_throws_is_reported},
    {"a_fork_leaves_the_threads_to_the_parent", a_fork_leaves_the_threads_to_the_parent},
};

}  // namespace

int main(int argc, char** argv) { return run_named_test(kTests, argc, argv); }

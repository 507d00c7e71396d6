// Tests of droplet's streams, events, launches and faults; each holds in the synchronous and the asynchronous mode.
#include <array>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include "check.h"
#include "tang_runtime.h"

namespace {

using std::chrono::milliseconds;

bool async() {
    int32_t is_async = 0;
    CHECK(tangIsAsync(&is_async) == tangSuccess);
    return is_async != 0;
}

// An int64 in device memory.
class Counter {
public:
    Counter() {
        CHECK(tangMalloc(&pointer_, sizeof(int64_t)) == tangSuccess);
        set(0);
    }
    ~Counter() { CHECK(tangFree(pointer_) == tangSuccess); }
    Counter(const Counter&) = delete;
    Counter& operator=(const Counter&) = delete;

    void set(int64_t value) {
        CHECK(tangMemcpy(pointer_, &value, sizeof value, tangMemcpyHostToDevice) == tangSuccess);
    }
    int64_t value() const {
        int64_t value = -1;
        CHECK(tangMemcpy(&value, pointer_, sizeof value, tangMemcpyDeviceToHost) == tangSuccess);
        return value;
    }
    int64_t* address() const { return static_cast<int64_t*>(tangDeviceAddress(pointer_)); }

private:
    void* pointer_ = nullptr;
};

struct Step {
    int64_t* counter;
    int64_t factor;
    int64_t summand;
    milliseconds delay;
};

// counter = counter * factor + summand: the order of the steps shows in the result.
void step(const void* args) {
    const Step& work = *static_cast<const Step*>(args);
    std::this_thread::sleep_for(work.delay);
    *work.counter = *work.counter * work.factor + work.summand;
}

tangError_t launch(tangStream_t stream, const Counter& counter, int64_t factor, int64_t summand, int delay_ms = 0) {
    const Step work = {counter.address(), factor, summand, milliseconds(delay_ms)};
    return tangLaunch(stream, step, &work, sizeof work);
}

tangStream_t created_stream() {
    tangStream_t stream = nullptr;
    CHECK(tangStreamCreate(&stream) == tangSuccess);
    return stream;
}

void work_of_a_stream_is_in_order() {
    const Counter counter;
    const tangStream_t stream = created_stream();
    CHECK(launch(stream, counter, 1, 3, 20) == tangSuccess);
    CHECK(launch(stream, counter, 10, 1) == tangSuccess);
    CHECK(launch(stream, counter, 10, 4) == tangSuccess);
    CHECK(tangStreamSynchronize(stream) == tangSuccess);
    CHECK(tangStreamQuery(stream) == tangSuccess);
    CHECK(counter.value() == 314);
    CHECK(tangStreamDestroy(stream) == tangSuccess);
    CHECK(tangStreamSynchronize(stream) == tangErrorInvalidHandle);
}

void more_work_than_the_ring_holds() {
    const Counter counter;
    const tangStream_t stream = created_stream();
    for (int i = 0; i < 2000; ++i) CHECK(launch(stream, counter, 1, 1) == tangSuccess);
    CHECK(tangStreamDestroy(stream) == tangSuccess);  // after the work that it holds
    CHECK(counter.value() == 2000);
}

void arguments_are_copied() {
    struct Large {
        int64_t* target;
        std::array<int64_t, 200> values;
    };
    const Counter counter;
    Large work = {counter.address(), {}};
    work.values.fill(2);
    CHECK(launch(nullptr, counter, 1, 0, 20) == tangSuccess);
    const auto sum = [](const void* args) {
        const auto& large = *static_cast<const Large*>(args);
        for (const int64_t value : large.values) *large.target += value;
    };
    CHECK(tangLaunch(nullptr, sum, &work, sizeof work) == tangSuccess);
    work.values.fill(1000);
    CHECK(tangDeviceSynchronize() == tangSuccess);
    CHECK(counter.value() == 400);
}

void events_order_streams() {
    const Counter counter;
    const tangStream_t first = created_stream();
    const tangStream_t second = created_stream();
    tangEvent_t event = nullptr;
    CHECK(tangEventCreateWithFlags(&event, tangEventDisableTiming) == tangSuccess);
    CHECK(tangEventQuery(event) == tangSuccess);  // nothing to wait for
    CHECK(launch(first, counter, 1, 7, 50) == tangSuccess);
    CHECK(tangEventRecord(event, first) == tangSuccess);
    CHECK(tangEventQuery(event) == (async() ? tangErrorNotReady : tangSuccess));
    CHECK(tangStreamQuery(first) == (async() ? tangErrorNotReady : tangSuccess));
    CHECK(tangStreamWaitEvent(second, event, 0) == tangSuccess);
    CHECK(launch(second, counter, 10, 1) == tangSuccess);
    CHECK(tangEventDestroy(event) == tangSuccess);  // what is queued for it goes on
    CHECK(tangStreamSynchronize(second) == tangSuccess);
    CHECK(counter.value() == 71);
    CHECK(tangStreamDestroy(first) == tangSuccess);
    CHECK(tangStreamDestroy(second) == tangSuccess);
    CHECK(tangEventQuery(event) == tangErrorInvalidHandle);
}

void events_measure_time() {
    const Counter counter;
    tangEvent_t start = nullptr;
    tangEvent_t end = nullptr;
    CHECK(tangEventCreateWithFlags(&start, tangEventDefault) == tangSuccess);
    CHECK(tangEventCreateWithFlags(&end, tangEventDefault) == tangSuccess);
    float elapsed = -1;
    CHECK(tangEventElapsedTime(&elapsed, start, end) == tangErrorInvalidHandle);
    CHECK_SAYS(tangGetLastErrorMessage(), "never recorded");
    CHECK(tangEventRecord(start, nullptr) == tangSuccess);
    CHECK(launch(nullptr, counter, 1, 1, 30) == tangSuccess);
    CHECK(tangEventRecord(end, nullptr) == tangSuccess);
    if (async()) CHECK(tangEventElapsedTime(&elapsed, start, end) == tangErrorNotReady);
    CHECK(tangEventSynchronize(end) == tangSuccess);
    CHECK(tangEventElapsedTime(&elapsed, start, end) == tangSuccess);
    CHECK(elapsed >= 29.0f && elapsed < 5000.0f);
    CHECK(tangEventDestroy(start) == tangSuccess);
    CHECK(tangEventDestroy(end) == tangSuccess);
}

void priorities_have_a_range() {
    int32_t least = -1;
    int32_t greatest = 1;
    CHECK(tangDeviceGetStreamPriorityRange(&least, &greatest) == tangSuccess);
    CHECK(least == 0 && greatest < least);
    tangStream_t stream = nullptr;
    CHECK(tangStreamCreateWithPriority(&stream, 0, greatest - 5) == tangSuccess);
    int32_t priority = 0;
    CHECK(tangStreamGetPriority(stream, &priority) == tangSuccess && priority == greatest);
    CHECK(tangStreamDestroy(stream) == tangSuccess);
    CHECK(tangStreamDestroy(nullptr) == tangErrorInvalidHandle);
}

void a_failed_launch_stays_until_reset() {
    const Counter counter;
    CHECK(tangSetFaultPlan("launch:2") == tangSuccess);
    CHECK(launch(nullptr, counter, 1, 1) == tangSuccess);
    const tangError_t launched = launch(nullptr, counter, 1, 10);
    CHECK(launched == (async() ? tangSuccess : tangErrorLaunchFailure));
    CHECK(tangStreamSynchronize(nullptr) == tangErrorLaunchFailure);
    CHECK_SAYS(tangGetLastErrorMessage(), "on demand");
    CHECK(tangPeekAtLastError() == tangErrorLaunchFailure);
    CHECK(tangDeviceSynchronize() == tangErrorLaunchFailure);
    CHECK(launch(nullptr, counter, 1, 100) == tangErrorLaunchFailure);
    CHECK(tangSetDevice(1) == tangSuccess);
    CHECK(tangDeviceSynchronize() == tangSuccess);  // the other device is well
    CHECK(tangSetDevice(0) == tangSuccess);
    CHECK(tangDeviceReset() == tangSuccess);
    CHECK(launch(nullptr, counter, 1, 1000) == tangSuccess);
    CHECK(counter.value() == 1001);
}

void a_throwing_kernel_is_a_failure() {
    const tangError_t launched =
        tangLaunch(nullptr, [](const void*) { throw std::runtime_error("index 7 is out of bounds"); }, nullptr, 0);
    CHECK(launched == (async() ? tangSuccess : tangErrorLaunchFailure));
    CHECK(tangDeviceSynchronize() == tangErrorLaunchFailure);
    CHECK_SAYS(tangGetLastErrorMessage(), "index 7 is out of bounds");
    CHECK(tangDeviceReset() == tangSuccess);
    CHECK(tangDeviceSynchronize() == tangSuccess);
}

// Run with DROPLET_FAULT=malloc:2.
void an_allocation_fails_on_demand() {
    void* first = nullptr;
    void* second = nullptr;
    CHECK(tangMalloc(&first, 16) == tangSuccess);
    CHECK(tangMalloc(&second, 16) == tangErrorMemoryAllocation);
    CHECK(tangMalloc(&second, 16) == tangSuccess);
    CHECK(tangFree(first) == tangSuccess);
    CHECK(tangFree(second) == tangSuccess);
}

void pinned_copies_do_not_wait() {
    using Clock = std::chrono::steady_clock;
    void* pinned = nullptr;
    void* device = nullptr;
    CHECK(tangHostAlloc(&pinned, 8) == tangSuccess);
    CHECK(tangMalloc(&device, 8) == tangSuccess);
    tangPointerAttributes_t attributes = {};
    CHECK(tangPointerGetAttributes(&attributes, static_cast<char*>(pinned) + 7) == tangSuccess);
    CHECK(attributes.type == tangMemoryTypeHost && attributes.base == pinned);
    std::memset(pinned, 9, 8);
    CHECK(tangSetFaultPlan("slow-copy:50000us") == tangSuccess);
    const auto start = Clock::now();
    CHECK(tangMemcpyAsync(device, pinned, 8, tangMemcpyHostToDevice, nullptr) == tangSuccess);
    const auto called = Clock::now() - start;
    CHECK(async() ? called < milliseconds(40) : called >= milliseconds(50));
    CHECK(tangStreamSynchronize(nullptr) == tangSuccess);
    CHECK(Clock::now() - start >= milliseconds(50));
    const auto pageable_start = Clock::now();
    int64_t received = 0;
    CHECK(tangMemcpyAsync(&received, device, 8, tangMemcpyDeviceToHost, nullptr) == tangSuccess);
    CHECK(Clock::now() - pageable_start >= milliseconds(50));
    CHECK(received == 0x0909090909090909);
    CHECK(tangSetFaultPlan("") == tangSuccess);
    CHECK(tangFreeHost(pinned) == tangSuccess);
    CHECK(tangFreeHost(pinned) == tangErrorInvalidValue);
    CHECK(tangFree(device) == tangSuccess);
}

void bad_fault_plans_are_refused() {
    for (const char* plan : {"malloc", "malloc:", "malloc:0", "malloc:x", "launch:-1", "slow-copy:5", "slow-copy:us",
                             "melt:1", "malloc:1,,launch:1"}) {
        CHECK(tangSetFaultPlan(plan) == tangErrorInitialization);
        CHECK_SAYS(tangGetLastErrorMessage(), "is not a fault");
    }
    CHECK(tangSetFaultPlan("malloc:1,launch:1,slow-copy:1us") == tangSuccess);
    CHECK(tangSetFaultPlan("") == tangSuccess);
}

void freeing_waits_for_the_work() {
    const tangStream_t stream = created_stream();
    void* kept = nullptr;
    {
        const Counter counter;
        CHECK(launch(stream, counter, 1, 5, 30) == tangSuccess);
        CHECK(tangMalloc(&kept, sizeof(int64_t)) == tangSuccess);
        CHECK(tangFree(kept) == tangSuccess);
        CHECK(tangStreamQuery(stream) == tangSuccess);
        CHECK(counter.value() == 5);
    }
    CHECK(tangStreamDestroy(stream) == tangSuccess);
}

void recorded_work_is_done_again() {
    const Counter counter;
    const tangStream_t stream = created_stream(), other = created_stream();
    CHECK(tangStreamBeginCapture(stream) == tangSuccess);
    CHECK(launch(stream, counter, 2, 1, 0) == tangSuccess);
    CHECK(launch(stream, counter, 3, 5, 0) == tangSuccess);
    tangGraph_t graph = nullptr;
    CHECK(tangStreamEndCapture(stream, &graph) == tangSuccess);
    CHECK(counter.value() == 0);  // recorded, not done
    CHECK(tangGraphLaunch(graph, stream) == tangSuccess);
    CHECK(tangStreamSynchronize(stream) == tangSuccess);
    CHECK(counter.value() == 8);
    CHECK(tangGraphLaunch(graph, other) == tangSuccess);
    CHECK(tangGraphDestroy(graph) == tangSuccess);  // what it has put on a stream goes on
    CHECK(tangStreamSynchronize(other) == tangSuccess);
    CHECK(counter.value() == 56);
    CHECK(tangGraphLaunch(graph, stream) == tangErrorInvalidHandle);
    CHECK(launch(stream, counter, 1, 1, 0) == tangSuccess);
    CHECK(tangStreamSynchronize(stream) == tangSuccess);
    CHECK(counter.value() == 57);
    CHECK(tangStreamDestroy(stream) == tangSuccess);
    CHECK(tangStreamDestroy(other) == tangSuccess);
}

void what_cannot_be_done_again_ends_the_record() {
    const Counter counter;
    const tangStream_t stream = created_stream();
    tangGraph_t graph = nullptr;
    CHECK(tangStreamEndCapture(stream, &graph) == tangErrorStreamCapture);
    CHECK(tangStreamBeginCapture(stream) == tangSuccess);
    CHECK(tangStreamBeginCapture(stream) == tangErrorStreamCapture);
    CHECK(launch(stream, counter, 1, 5, 0) == tangSuccess);
    CHECK(tangStreamSynchronize(stream) == tangErrorStreamCapture);
    CHECK_SAYS(tangGetLastErrorMessage(), "the host waited while the stream was recorded");
    CHECK(tangStreamEndCapture(stream, &graph) == tangErrorStreamCapture && graph == nullptr);
    const int64_t pageable = 3;
    CHECK(tangStreamBeginCapture(stream) == tangSuccess);
    CHECK(tangMemcpyAsync(tangDevicePointer(counter.address()), &pageable, sizeof pageable, tangMemcpyHostToDevice,
                          stream) == tangErrorStreamCapture);
    CHECK(tangStreamEndCapture(stream, &graph) == tangErrorStreamCapture);
    CHECK(launch(stream, counter, 1, 7, 0) == tangSuccess);  // the stream works on
    CHECK(tangStreamSynchronize(stream) == tangSuccess);
    CHECK(counter.value() == 7);
    CHECK(tangStreamDestroy(stream) == tangSuccess);
}

constexpr NamedTest kTests[] = {
    {"work_of_a_stream_is_in_order", work_of_a_stream_is_in_order},
    {"more_work_than_the_ring_holds", more_work_than_the_ring_holds},
    {"arguments_are_copied", arguments_are_copied},
    {"events_order_streams", events_order_streams},
    {"events_measure_time", events_measure_time},
    {"priorities_have_a_range", priorities_have_a_range},
    {"a_failed_launch_stays_until_reset", a_failed_launch_stays_until_reset},
    {"a_throwing_kernel_is_a_failure", a_throwing_kernel_is_a_failure},
    {"an_allocation_fails_on_demand", an_allocation_fails_on_demand},
    {"pinned_copies_do_not_wait", pinned_copies_do_not_wait},
    {"bad_fault_plans_are_refused", bad_fault_plans_are_refused},
    {"freeing_waits_for_the_work", freeing_waits_for_the_work},
    {"recorded_work_is_done_again", recorded_work_is_done_again},
    {"what_cannot_be_done_again_ends_the_record", what_cannot_be_done_again_ends_the_record},
};

}  // namespace

int main(int argc, char** argv) { return run_named_test(kTests, argc, argv); }

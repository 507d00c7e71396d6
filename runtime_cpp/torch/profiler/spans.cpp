// Events around device work, and their translation to the host's clock.
//
// The device's clock is tied to the host's once for each device: a recorded event between two readings of the host's clock.
// A span's place is the time since that event; the reference moves on with the spans, because a float of milliseconds
// loses nanoseconds over seconds.
#include "spans.h"

#include <c10/util/ApproximateClock.h>
#include <unistd.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <mutex>

#include "device/event.h"
#include "device/stream.h"
#include "wrapper/context.h"

namespace dipu {

constinit std::atomic<bool> spans_wanted{false};

struct OpenSpan {
    Span span;
    uint64_t recording;  // which recording it belongs to
    std::shared_ptr<Event> begin;
    std::shared_ptr<Event> end;
};

namespace {

// How many spans may wait before those that are done are translated and their events reused.
constexpr std::size_t kMaxWaiting = 4096;

// The reference of a device's clock moves after so many milliseconds.
constexpr double kMaxReferenceAge = 20;

// The place of an event on the host's clock.
struct Reference {
    std::shared_ptr<Event> event;
    int64_t time = 0;  // nanoseconds since the epoch
};

struct Recording {
    std::mutex mutex;
    uint64_t number = 0;
    std::deque<std::unique_ptr<OpenSpan>> waiting;
    std::vector<Span> done;
    std::array<Reference, kMaxDevices> references;
    std::array<std::vector<std::shared_ptr<Event>>, kMaxDevices> spare;
};

Recording& recording() {
    static Recording& value = *new Recording;
    return value;
}

thread_local std::vector<uint64_t> operators;

int32_t thread_id() {
    static thread_local const auto id = static_cast<int32_t>(syscall(SYS_gettid));
    return id;
}

// The narrowest of a few tries: in an asynchronous chip the event may come late.
Reference tied_to_the_host(const c10::Stream& stream) {
    constexpr int kTries = 5;
    Reference best;
    int64_t width = 0;
    synchronize_stream(stream);
    for (int turn = 0; turn < kTries; ++turn) {
        auto event = std::make_shared<Event>(stream.device_index(), true);
        const int64_t before = c10::getTime();
        event->record(stream);
        event->synchronize();
        const int64_t after = c10::getTime();
        if (best.event == nullptr || after - before < width) {
            width = after - before;
            best = {std::move(event), before + width / 2};
        }
    }
    return best;
}

std::shared_ptr<Event> spare_event(Recording& all, c10::DeviceIndex device) {
    auto& spare = all.spare[static_cast<std::size_t>(device)];
    if (spare.empty()) {
        return std::make_shared<Event>(device, true);
    }
    auto event = std::move(spare.back());
    spare.pop_back();
    return event;
}

int64_t nanoseconds(double milliseconds) { return static_cast<int64_t>(milliseconds * 1e6); }

// Work cannot begin on the device before its call on the host: what the tie of the clocks missed is taken out.
void translate(Recording& all, OpenSpan& open) {
    Span& span = open.span;
    Reference& reference = all.references[static_cast<std::size_t>(span.device)];
    const double since = reference.event->elapsed_ms(*open.begin);
    const int64_t start = reference.time + nanoseconds(since);
    span.start = std::max(start, span.host_start);
    span.end = span.start + nanoseconds(std::max(0.0, open.begin->elapsed_ms(*open.end)));
    all.done.push_back(span);
    if (since > kMaxReferenceAge) {
        reference = {open.begin, start};
    }
    auto& spare = all.spare[static_cast<std::size_t>(span.device)];
    if (reference.event != open.begin) {
        spare.push_back(std::move(open.begin));
    }
    spare.push_back(std::move(open.end));
}

// Translates spans from the front; without `wait` only those that are done.
void settle(Recording& all, bool wait) {
    while (!all.waiting.empty()) {
        OpenSpan& front = *all.waiting.front();
        try {
            if (wait) {
                front.end->synchronize();
            } else if (!front.end->query()) {
                return;
            }
            translate(all, front);
        } catch (const std::exception&) {
            // A device in error answers no event: the span is lost, the others may be answered.
        }
        all.waiting.pop_front();
    }
}

OpenSpan* open_span(const Span& span) noexcept {
    try {
        const c10::Stream stream = stream_of(span.device, span.stream);
        auto open = std::make_unique<OpenSpan>(OpenSpan{span, 0, nullptr, nullptr});
        Recording& all = recording();
        {
            const std::lock_guard<std::mutex> lock(all.mutex);
            open->recording = all.number;
            Reference& reference = all.references[static_cast<std::size_t>(span.device)];
            if (reference.event == nullptr) {
                reference = tied_to_the_host(stream);
            }
            open->begin = spare_event(all, span.device);
            open->end = spare_event(all, span.device);
        }
        open->span.thread = thread_id();
        open->span.operator_id = operators.empty() ? 0 : operators.back();
        open->span.host_start = c10::getTime();
        open->begin->record(stream);
        return open.release();
    } catch (const std::exception&) {
        return nullptr;  // the work itself must not fail because it is watched
    }
}

void close_span(std::unique_ptr<OpenSpan> open) noexcept {
    try {
        open->end->record(stream_of(open->span.device, open->span.stream));
        open->span.host_end = c10::getTime();
        Recording& all = recording();
        const std::lock_guard<std::mutex> lock(all.mutex);
        if (open->recording != all.number) {
            return;
        }
        all.waiting.push_back(std::move(open));
        if (all.waiting.size() > kMaxWaiting) {
            settle(all, false);
        }
    } catch (const std::exception&) {
        return;  // as above
    }
}

}  // namespace

CallSpan::CallSpan(const char* name, diopiContextHandle_t context) noexcept
    : open_(open_span({name, false, context->device, thread_devices.streams[context->device].id, 0, 0, 0})) {}

CallSpan::CallSpan(const char* name, int8_t device) noexcept
    : open_(recording_spans() ? open_span({name, false, device, thread_devices.streams[device].id, 0, 0, 0})
                              : nullptr) {}

CallSpan::CallSpan(const char* name, int8_t device, std::size_t bytes) noexcept
    : open_(recording_spans() ? open_span({name, true, device, thread_devices.streams[device].id, bytes, 0, 0})
                              : nullptr) {}

CallSpan::~CallSpan() {
    if (open_ != nullptr) {
        close_span(std::unique_ptr<OpenSpan>(open_));
    }
}

void start_spans() {
    Recording& all = recording();
    const std::lock_guard<std::mutex> lock(all.mutex);
    all.number += 1;
    all.waiting.clear();
    all.done.clear();
    all.references.fill({});
    spans_wanted.store(true, std::memory_order_relaxed);
}

void stop_spans() { spans_wanted.store(false, std::memory_order_relaxed); }

std::vector<Span> collected_spans() {
    Recording& all = recording();
    const std::lock_guard<std::mutex> lock(all.mutex);
    settle(all, true);
    all.number += 1;  // what is still open belongs to nothing
    all.spare = {};
    return std::move(all.done);
}

void enter_operator(uint64_t id) { operators.push_back(id); }

void leave_operator() {
    if (!operators.empty()) {
        operators.pop_back();
    }
}

}  // namespace dipu

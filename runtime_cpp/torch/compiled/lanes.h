// The streams of a program whose instructions may run at once: which runs now, and what each waits for.
#pragma once

#include <c10/core/Stream.h>

#include <cstddef>
#include <exception>
#include <memory>
#include <vector>

#include "device/event.h"
#include "wrapper/context.h"

namespace dipu::compiled {

// Lane 0 is the stream that is current when a run begins; the others are streams of their own. One run at a time.
class Lanes {
public:
    // `events` are marks that one lane sets and others wait for.
    Lanes(c10::DeviceIndex device, std::size_t lanes, std::size_t events);

    // One run: from its first lane to the join of all, also when it fails.
    class Run {
    public:
        Run(Lanes& lanes, diopiContextHandle_t first);
        ~Run();
        Run(const Run&) = delete;
        Run& operator=(const Run&) = delete;

        // Goes on on a lane, whose first work waits for what was there when the run began.
        diopiContextHandle_t enter(std::size_t lane);
        // What the lane has done so far; another one's further work waits for it.
        void mark(std::size_t event);
        void wait(std::size_t event);

        // Why a function did not get what it last asked for on this lane.
        std::exception_ptr failure() const { return contexts_[now_]->failure; }

    private:
        c10::Stream stream(std::size_t lane) const { return lane == 0 ? first_ : lanes_.streams_[lane - 1]; }

        Lanes& lanes_;
        const c10::Stream first_;
        std::size_t now_ = 0;
        std::vector<diopiContextHandle_t> contexts_;      // of the lanes that have been entered
        std::vector<std::unique_ptr<Context>> own_;       // of all but the first
    };

private:
    c10::DeviceIndex device_;
    std::vector<c10::Stream> streams_;  // of lane 1 on
    std::vector<std::unique_ptr<Event>> ends_;
    std::vector<std::unique_ptr<Event>> marks_;
    Event begin_;
};

}  // namespace dipu::compiled

// Python stacks of allocations, recorded on request; otherwise one relaxed load for each allocation.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "export.h"

namespace c10 {
struct GatheredContext;
}

namespace dipu {

struct Frame {
    std::string file;
    std::string function;
    int64_t line;
};

// Where a thread was. Capturing is cheap; frames become text when they are asked for.
class DIPU_API Stack {
public:
    static std::shared_ptr<Stack> captured();

    // The innermost first. Takes Python's lock the first time. Nothing for what was not asked for before close().
    std::vector<Frame> frames();

    // Before Python ends: from then on its frames can no longer become text.
    static void close();

private:
    std::mutex mutex_;
    std::shared_ptr<c10::GatheredContext> context_;  // until the frames are text
    std::vector<Frame> frames_;
};

extern DIPU_API constinit std::atomic<bool> stacks_wanted;

inline bool recording_stacks() noexcept { return stacks_wanted.load(std::memory_order_relaxed); }

}  // namespace dipu

// Stacks through torch's combined traceback, which knows Python's frames.
#include "stacks.h"

#include <torch/csrc/profiler/combined_traceback.h>

namespace dipu {

constinit std::atomic<bool> stacks_wanted{false};

namespace {

std::atomic<bool> closed{false};

}  // namespace

void Stack::close() {
    stacks_wanted.store(false, std::memory_order_relaxed);
    closed.store(true);
}

std::shared_ptr<Stack> Stack::captured() {
    auto stack = std::make_shared<Stack>();
    if (closed.load()) {
        return stack;
    }
    stack->context_ = torch::CapturedTraceback::gather(/*python=*/true, /*script=*/false, /*cpp=*/false);
    return stack;
}

std::vector<Frame> Stack::frames() {
    std::shared_ptr<c10::GatheredContext> context;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (context_ == nullptr || closed.load()) {
            return frames_;
        }
        context = context_;
    }
    // Python may run while its frames become text, so no lock of ours is held then.
    const torch::SymbolizedTracebacks text = torch::symbolize({torch::getCapturedTracebackFromContext(context)});
    std::vector<Frame> frames;
    for (const uint64_t index : text.tracebacks.at(0)) {
        const auto& frame = text.all_frames.at(index);
        frames.push_back({frame.filename, frame.funcname, static_cast<int64_t>(frame.lineno)});
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    frames_ = std::move(frames);
    context_.reset();
    return frames_;
}

}  // namespace dipu

// Starts the collectives of a group in the order of their calls, each when its inputs are on the host.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace dipu::distributed {

class IssueQueue {
public:
    using Step = std::function<void()>;  // throws nothing

    IssueQueue() = default;
    ~IssueQueue() { stop(); }
    IssueQueue(const IssueQueue&) = delete;
    IssueQueue& operator=(const IssueQueue&) = delete;

    // Runs `step` after those added before. If it need not wait and none is before it, that happens at once in the
    // calling thread, because waking another one costs more than starting most collectives.
    void add(Step step, bool need_not_wait);

    // Returns when all steps have run; none may be added afterwards.
    void stop();

private:
    void run();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Step> steps_;
    bool running_ = false;  // a step runs, in whichever thread
    bool stopped_ = false;
    std::thread thread_;  // started by the first step that waits
};

}  // namespace dipu::distributed

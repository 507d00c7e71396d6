// When one rank's group fails, all ranks write their flight records: torch's tool compares them.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "flight_recorder.h"

namespace dipu::distributed {

class FailureSignal {
public:
    // That of this process, which lives as long as its first group; null where nothing is to be written.
    static std::shared_ptr<FailureSignal> of_process(const c10::intrusive_ptr<c10d::Store>& store, int rank);
    // A group of this process failed: the first time, writes this rank's record and asks the others to. Nothing without a group.
    static void fail();

    // Waits for a record that is being written, for which Python must not end, and writes no other one.
    DIPU_API static void end();

    // `store` is of the ranks that take part, of which this is number `rank` of all processes.
    FailureSignal(const c10::intrusive_ptr<c10d::Store>& store, int rank);
    ~FailureSignal() { stop(); }
    FailureSignal(const FailureSignal&) = delete;
    FailureSignal& operator=(const FailureSignal&) = delete;
    void stop();

private:
    void run();
    // The record of this process, once. Ends after the time that torch's variables give, whether it is written or not.
    void write();

    c10::intrusive_ptr<c10d::Store> store_;
    int rank_;
    std::atomic_flag asked_;  // the others for theirs
    std::mutex mutex_;
    std::condition_variable stopped_;
    bool stopping_ = false;
    bool written_ = false;  // or being written
    std::thread thread_;  // last: it uses all of the above
};

}  // namespace dipu::distributed

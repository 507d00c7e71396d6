// The handle of one launch of the vendor's collectives: an event on the stream that it is on.
#pragma once

#include <c10/core/Stream.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "communicators.h"
#include "device/event.h"
#include "distributed/flight_recorder.h"
#include "group_failure.h"

namespace dipu::collectives {

class DeviceWork final : public c10d::Work {
public:
    struct Facts {
        int rank;
        int size;
        c10d::OpType type;
        const char* title;  // e.g. "dicl:all_reduce", as in profiles
        uint64_t sequence;
        std::chrono::milliseconds timeout;
        bool blocks;  // wait() waits on the host: a barrier
        bool timed;
    };

    // A torch.distributed.DistBackendError that says which collective failed, where and why.
    static std::exception_ptr failed(const Facts& facts, const std::vector<at::Tensor>& tensors,
                                     const std::string& why);

    // Made before the launch. `caller` is the stream that was current; `communicators` are those that an abort has to end.
    DeviceWork(const Facts& facts, const std::vector<at::Tensor>& inputs, std::vector<at::Tensor> results,
               const c10::Stream& stream, const c10::Stream& caller, std::vector<CommunicatorPtr> communicators,
               std::vector<distributed::RecordedCall> records, std::shared_ptr<GroupFailure> group_failure);

    void begin();                                // before the launch, on its stream
    void launched(std::vector<at::Tensor> used);  // behind it; the tensors live until it is over

    // For the watchdog: whether it is over, and then ends it; late, when its time is up.
    bool ended();
    void let_go() { let_go_ = true; }  // the watchdog is through with it
    bool is_let_go() const { return let_go_; }
    bool late() const { return std::chrono::steady_clock::now() - started_ > facts_.timeout; }
    bool settled() const { return finished_.test(); }  // it has ended, well or not
    // Ends the work with an error, unless it has ended.
    void fail(const std::exception_ptr& error);
    std::exception_ptr failure(const std::string& why) const { return failed(facts_, results_, why); }
    const Facts& facts() const { return facts_; }
    const std::vector<CommunicatorPtr>& communicators() const { return communicators_; }
    bool waited() const { return waited_; }

    bool isCompleted() override;
    bool isSuccess() const override;
    // Makes the current stream wait, and the host only with a timeout or for a barrier. Throws what failed so far.
    bool wait(std::chrono::milliseconds timeout) override;
    void synchronize() override { wait(kNoTimeout); }
    void blockCurrentStream() override { wait(kNoTimeout); }
    void abort() override;
    std::vector<at::Tensor> result() override { return results_; }
    // Its value, the list of the results, is there at once, for whoever waits for it on a stream.
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
    float getDuration() const override;  // milliseconds
    uint64_t getSequencenumber() const override { return facts_.sequence; }

private:
    // Work that has failed is over as well.
    void find_failure();
    void rethrow() const;
    bool over();
    void release();

    Facts facts_;
    std::vector<at::Tensor> used_;
    std::vector<at::Tensor> results_;
    c10::Stream stream_;
    c10::Stream caller_;
    std::vector<CommunicatorPtr> communicators_;
    std::vector<distributed::RecordedCall> records_;
    std::shared_ptr<GroupFailure> group_failure_;
    std::unique_ptr<Event> begin_;
    Event end_;
    std::chrono::steady_clock::time_point started_;
    c10::intrusive_ptr<c10::ivalue::Future> future_;
    std::atomic<bool> waited_ = false;
    std::atomic<bool> let_go_ = false;
    std::atomic_flag finished_;
};

using DeviceWorkPtr = c10::intrusive_ptr<DeviceWork>;

}  // namespace dipu::collectives

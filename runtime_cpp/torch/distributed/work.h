// The handle of one collective on device tensors: it ends when its outputs are on the device, or with an error.
#pragma once

#include <c10/core/Stream.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "export.h"
#include "flight_recorder.h"
#include "waiters.h"

namespace dipu::distributed {

class StagedWork final : public c10d::Work {
public:
    // `title` stands in profiles, e.g. "dicl:all_reduce". `output_stream` writes the outputs; `callbacks` runs what is chained
    // to the future, apart from the threads that the next collectives need.
    StagedWork(int rank, c10d::OpType type, const char* title, const std::vector<at::Tensor>& inputs,
               std::vector<at::Tensor> outputs, const c10::Stream& output_stream, std::shared_ptr<Waiters> callbacks,
               const RecordedCall& record);

    // The first of these ends the work; later ones do nothing, as when it was aborted meanwhile.
    void succeed(int source_rank = -1);
    void fail(const std::exception_ptr& error);

    const char* title() const { return title_; }

    // wait() of the base class blocks the host until the work has ended. The outputs were written before that, so no
    // stream has to wait for them.
    void synchronize() override {}
    int sourceRank() const override { return source_rank_; }
    std::vector<at::Tensor> result() override;
    // Its value is the list of the outputs. A program in Python gets it when a collective has ended (see set_python_wait).
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

private:
    using Ending = std::function<void(c10::ivalue::Future&)>;
    void end_future(const Ending& ending);

    const char* title_;
    std::vector<at::Tensor> outputs_;
    c10::Stream output_stream_;
    std::shared_ptr<Waiters> callbacks_;
    RecordedCall record_;
    c10::intrusive_ptr<c10::ivalue::Future> future_;
    std::mutex future_mutex_;
    bool future_taken_ = false;  // it may have callbacks
    std::atomic<int> source_rank_ = -1;
    std::atomic_flag ended_;
};

// The Python extension gives a function that, in a thread that runs Python, waits for the future and lets other threads run.
//
// Callbacks of a future that is there already run in the thread that adds them, as they do for streams of other devices. So the
// collectives that callbacks start have the same place on all ranks; from threads of their own they would come in any order.
using PythonWait = void (*)(c10::ivalue::Future& future);
DIPU_API void set_python_wait(PythonWait wait);

using StagedWorkPtr = c10::intrusive_ptr<StagedWork>;

// A torch.distributed.DistBackendError that says which collective failed on which rank, and why.
std::exception_ptr failure(const StagedWork& work, int rank, int size, const std::exception_ptr& cause);

}  // namespace dipu::distributed

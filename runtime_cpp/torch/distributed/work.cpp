// Ends a collective's work exactly once, and then its future.
#include "work.h"

#include <ATen/core/ivalue.h>
#include <c10/core/StreamGuard.h>
#include <c10/util/Exception.h>

#include <string>
#include <utility>

#include "failure_signal.h"

namespace dipu::distributed {
namespace {

std::atomic<PythonWait> python_wait = nullptr;

std::string text_of(const std::exception_ptr& cause) {
    try {
        std::rethrow_exception(cause);
    } catch (const c10::Error& error) {
        return error.what_without_backtrace();
    } catch (const std::exception& error) {
        return error.what();
    } catch (...) {
        return "an unknown error";
    }
}

}  // namespace

StagedWork::StagedWork(int rank, c10d::OpType type, const char* title, const std::vector<at::Tensor>& inputs,
                       std::vector<at::Tensor> outputs, const c10::Stream& output_stream,
                       std::shared_ptr<Waiters> callbacks, const RecordedCall& record)
    : Work(rank, type, title, inputs),
      title_(title),
      outputs_(std::move(outputs)),
      output_stream_(output_stream),
      callbacks_(std::move(callbacks)),
      record_(record),
      future_(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()),
                                                       std::vector<c10::Device>{output_stream.device()})) {}

void StagedWork::succeed(int source_rank) {
    if (ended_.test_and_set()) {
        return;
    }
    source_rank_ = source_rank;
    finish();
    record_.complete();
    end_future([outputs = outputs_, stream = output_stream_](c10::ivalue::Future& future) {
        // What waits for the future waits for this stream, which is idle; the one that is current here may be busy.
        const c10::StreamGuard on_stream(stream);
        future.markCompleted(c10::IValue(outputs));
    });
}

void StagedWork::fail(const std::exception_ptr& error) {
    if (ended_.test_and_set()) {
        return;
    }
    finish(error);
    end_future([error](c10::ivalue::Future& future) { future.setError(error); });
}

void StagedWork::end_future(const Ending& ending) {
    {
        const std::lock_guard<std::mutex> lock(future_mutex_);
        if (!future_taken_) {
            ending(*future_);
            return;
        }
    }
    callbacks_->add([future = future_, ending] { ending(*future); });
}

void set_python_wait(PythonWait wait) { python_wait = wait; }

c10::intrusive_ptr<c10::ivalue::Future> StagedWork::getFuture() {
    // A send may wait for a receive that the caller starts only afterwards.
    const PythonWait wait = python_wait;
    if (wait != nullptr && !c10d::isP2POp(opType_)) {
        wait(*future_);
    }
    const std::lock_guard<std::mutex> lock(future_mutex_);
    future_taken_ = true;
    return future_;
}

std::vector<at::Tensor> StagedWork::result() {
    TORCH_CHECK(isCompleted(), "the result of '", title_, "' is there after wait(); it has not ended yet");
    return outputs_;
}

std::exception_ptr failure(const StagedWork& work, int rank, int size, const std::exception_ptr& cause) {
    FailureSignal::fail();
    try {
        TORCH_CHECK_WITH(
            DistBackendError, false, work.title(), " failed on rank ", rank, " of ", size, ": ", text_of(cause),
            "\nA rank may have ended, or be later than the group's timeout. The group is of no more use: call "
            "destroy_process_group(), and make a new one with the ranks that are left.");
    } catch (...) {
        return std::current_exception();
    }
}

}  // namespace dipu::distributed

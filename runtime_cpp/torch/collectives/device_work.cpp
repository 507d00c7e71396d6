// Waits for launches, by their events.
#include "device_work.h"

#include <ATen/core/ivalue.h>
#include <c10/core/StreamGuard.h>
#include <c10/util/Exception.h>

#include <sstream>
#include <thread>
#include <utility>

#include "device/async_failure.h"

namespace dipu::collectives {
namespace {

std::string shapes_of(const std::vector<at::Tensor>& tensors) {
    constexpr std::size_t kMost = 8;
    std::ostringstream text;
    for (std::size_t i = 0; i < tensors.size() && i < kMost; ++i) {
        text << (i == 0 ? "" : ", ") << tensors[i].scalar_type() << tensors[i].sizes();
    }
    if (tensors.size() > kMost) {
        text << ", and " << tensors.size() - kMost << " more";
    }
    return text.str();
}

}  // namespace

DeviceWork::DeviceWork(const Facts& facts, const std::vector<at::Tensor>& inputs, std::vector<at::Tensor> results,
                       const c10::Stream& stream, const c10::Stream& caller, std::vector<CommunicatorPtr> communicators,
                       std::vector<distributed::RecordedCall> records, std::shared_ptr<GroupFailure> group_failure)
    : Work(facts.rank, facts.type, facts.title, inputs),
      facts_(facts),
      results_(std::move(results)),
      stream_(stream),
      caller_(caller),
      communicators_(std::move(communicators)),
      records_(std::move(records)),
      group_failure_(std::move(group_failure)),
      begin_(facts.timed ? std::make_unique<Event>(stream.device_index(), true) : nullptr),
      end_(stream.device_index(), facts.timed),
      started_(std::chrono::steady_clock::now()),
      future_(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()),
                                                       std::vector<c10::Device>{stream.device()})) {}

void DeviceWork::begin() {
    if (begin_) {
        begin_->record(stream_);
    }
}

void DeviceWork::launched(std::vector<at::Tensor> used) {
    used_ = std::move(used);
    end_.record(stream_);
    const c10::StreamGuard on_stream(stream_);
    future_->markCompleted(c10::IValue(results_));
    if (recordFunctionEndCallback_) {
        recordFunctionEndCallback_();  // here: the profiler may be gone when the launch is over
        recordFunctionEndCallback_ = nullptr;
    }
}

bool DeviceWork::over() { return end_.query(); }

void DeviceWork::release() {
    const std::lock_guard<std::mutex> lock(mutex_);
    used_.clear();
}

bool DeviceWork::ended() {
    if (!over()) {
        return false;
    }
    if (!finished_.test_and_set()) {
        finish();
        for (const distributed::RecordedCall& record : records_) {
            record.complete();
        }
    }
    return true;
}

void DeviceWork::fail(const std::exception_ptr& error) {
    if (!finished_.test_and_set()) {
        finish(error);
    }
}

std::exception_ptr DeviceWork::failed(const Facts& facts, const std::vector<at::Tensor>& tensors,
                                      const std::string& why) {
    try {
        TORCH_CHECK_WITH(
            DistBackendError, false, facts.title, " failed on rank ", facts.rank, " of ", facts.size, ": ", why,
            " (call ", facts.sequence, " of its group, ", shapes_of(tensors),
            ")\nA rank may have ended, or be later than the group's timeout. The group is "
            "of no more use: call destroy_process_group(), and make a new one with the ranks that are left.");
    } catch (...) {
        return std::current_exception();
    }
}

bool DeviceWork::isCompleted() {
    if (exception() != nullptr) {
        return true;
    }
    const bool completed = over();
    if (completed) {
        find_failure();
    }
    return completed;
}

bool DeviceWork::isSuccess() const { return exception() == nullptr; }

void DeviceWork::rethrow() const {
    if (const std::exception_ptr error = exception()) {
        tell_async_failure(error);
        std::rethrow_exception(error);
    }
}

bool DeviceWork::wait(std::chrono::milliseconds timeout) {
    rethrow();
    waited_ = true;
    const c10::Stream current = current_stream(stream_.device_index());
    end_.block(current);
    if (current == caller_) {
        release();  // whoever gets the memory next uses it behind the launch
    }
    if (timeout != kNoTimeout) {
        const auto limit = std::chrono::steady_clock::now() + timeout;
        std::chrono::microseconds pause{20};
        while (!over()) {
            TORCH_CHECK(std::chrono::steady_clock::now() < limit, facts_.title, " timed out after ", timeout.count(),
                        " ms of wait(); it goes on");
            std::this_thread::sleep_for(pause);
            pause = std::min(2 * pause, std::chrono::microseconds(1000));
        }
    } else if (facts_.blocks) {
        end_.synchronize();
    } else {
        return true;
    }
    find_failure();
    rethrow();
    ended();
    return true;
}

void DeviceWork::find_failure() {
    for (const CommunicatorPtr& communicator : communicators_) {
        if (const std::string why = communicator->failure(); !why.empty()) {
            fail(group_failure_->set(failure(why), true));
        }
    }
}

void DeviceWork::abort() {
    if (!ended()) {
        fail(failure("it was aborted"));  // before: an abort lets the stream go on, which looks like an end
    }
    for (const CommunicatorPtr& communicator : communicators_) {
        communicator->abort();
    }
}

float DeviceWork::getDuration() const {
    TORCH_CHECK(begin_ != nullptr, "durations are measured after _enable_collectives_timing() only");
    return static_cast<float>(begin_->elapsed_ms(end_));
}

}  // namespace dipu::collectives

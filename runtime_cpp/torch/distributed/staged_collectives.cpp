// The course of a collective: its inputs to the host, the host's collective on the bytes, its outputs to the device.
#include "staged_collectives.h"

#include <future>
#include <thread>
#include <utility>

#include "device/stream.h"

namespace dipu::distributed {
namespace {

using c10d::OpType;

// Ends a work after its collective on the host; `host_result` throws if that failed.
struct Ending {
    std::shared_ptr<Pending> pending;
    std::shared_ptr<Staging> staging;
    StagedWorkPtr work;
    std::function<void(Staging&)> finish;
    int rank;
    int size;

    // `host_result` returns the rank that sent, if any.
    template <class HostResult>
    void operator()(const HostResult& host_result) const {
        try {
            const int source = host_result();
            if (finish) {
                finish(*staging);
            }
            staging->write_outputs();
            pending->remove(work);
            work->succeed(source);
        } catch (...) {
            pending->remove(work);
            work->fail(failure(*work, rank, size, std::current_exception()));
        }
    }
};

}  // namespace

StagedCollectives::StagedCollectives(c10::intrusive_ptr<c10d::Backend> host)
    : host_(std::move(host)),
      rank_(host_->getRank()),
      size_(host_->getSize()) {}

StagedCollectives::~StagedCollectives() {
    queue_.stop();
    pending_->abort_host_works();
    if (pending_->aborted()) {
        // The host's group waits for its collectives until they time out; an abort does not.
        std::thread([host = std::move(host_)]() mutable { host.reset(); }).detach();
    }
    host_.reset();
    waiters_->stop();
}

std::unique_ptr<Collectives> StagedCollectives::split(const c10::intrusive_ptr<c10d::Store>& store,
                                                      const std::vector<int>& ranks,
                                                      std::chrono::milliseconds timeout) {
    const auto options = host_->getBackendOptions();
    const std::chrono::milliseconds before = std::exchange(options->timeout, timeout);
    c10::intrusive_ptr<c10d::Backend> host = host_->split(store, ranks, options);
    options->timeout = before;
    return std::make_unique<StagedCollectives>(std::move(host));
}

const CopyStreams& StagedCollectives::streams_of(c10::DeviceIndex device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto found = streams_.find(device);
    if (found == streams_.end()) {
        found = streams_.emplace(device, CopyStreams{pool_stream(device, -1), pool_stream(device, -1)}).first;
    }
    return found->second;
}

WorkPtr StagedCollectives::issue(const Operation& operation, Started started) {
    const CopyStreams& streams = streams_of(operation.device);
    const auto work =
        c10::make_intrusive<StagedWork>(rank_, operation.call.type, operation.title, operation.inputs,
                                        operation.results, streams.to_device, waiters_, operation.call.record);
    const auto staging = std::make_shared<Staging>(operation.inputs, operation.outputs, streams);
    pending_->add(work);
    const bool ready = staging->is_ready();
    queue_.add(
        [this, work, staging, start = operation.start, started = std::move(started)] {
            try {
                staging->wait_until_ready();
                if (!pending_->aborted()) {
                    started(work, staging, start(*host_, *staging));
                }
            } catch (...) {
                pending_->remove(work);
                work->fail(failure(*work, rank_, size_, std::current_exception()));
            }
        },
        ready);
    return work;
}

WorkPtr StagedCollectives::run(Operation operation) {
    return issue(operation,
                 [this, finish = std::move(operation.finish)](
                     const StagedWorkPtr& work, const std::shared_ptr<Staging>& staging, const WorkPtr& host_work) {
                     const Ending ending{pending_, staging, work, finish, rank_, size_};
                     host_work->getFuture()->addCallback([ending](c10::ivalue::Future& host_future) {
                         ending([&host_future] {
                             if (host_future.hasError()) {
                                 std::rethrow_exception(host_future.exception_ptr());
                             }
                             return -1;
                         });
                     });
                 });
}

WorkPtr StagedCollectives::run_point_to_point(Operation operation) {
    const bool receives = operation.call.type != OpType::SEND;
    return issue(operation, [this, receives](const StagedWorkPtr& work, const std::shared_ptr<Staging>& staging,
                                             const WorkPtr& host_work) {
        pending_->set_host_work(work, host_work);
        const Ending ending{pending_, staging, work, nullptr, rank_, size_};
        waiters_->add([ending, host_work, receives] {
            ending([&host_work, receives] {
                TORCH_CHECK(host_work->wait(), "it was aborted");
                return receives ? host_work->sourceRank() : -1;
            });
        });
    });
}

void StagedCollectives::monitored_barrier(std::chrono::milliseconds timeout, bool all_ranks) {
    std::promise<void> done;
    queue_.add(
        [this, &done, timeout, all_ranks] {
            try {
                c10d::BarrierOptions options;
                options.timeout = timeout;
                host_->monitoredBarrier(options, all_ranks);
                done.set_value();
            } catch (...) {
                done.set_exception(std::current_exception());
            }
        },
        true);
    done.get_future().get();
}

void StagedCollectives::set_timeout(std::chrono::milliseconds timeout) { host_->setTimeout(timeout); }

void StagedCollectives::abort() {
    pending_->abort(std::make_exception_ptr(c10::DistBackendError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)},
                                                                  "dicl: this process group was aborted")));
}

}  // namespace dipu::distributed

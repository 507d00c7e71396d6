// Collectives through pinned host memory and a group of torch for CPU tensors (Gloo).
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "collectives.h"
#include "issue_queue.h"
#include "pending.h"
#include "staging.h"
#include "waiters.h"

namespace dipu::distributed {

class StagedCollectives final : public Collectives {
public:
    // `host` serves the same ranks for CPU tensors, and nobody else uses it.
    explicit StagedCollectives(c10::intrusive_ptr<c10d::Backend> host);
    // Waits for what the host still does, unless aborted.
    ~StagedCollectives() override;

    WorkPtr broadcast(const Tensors& tensors, int root, Call call) override;
    WorkPtr allreduce(const Tensors& tensors, const c10d::ReduceOp& op, Call call) override;
    WorkPtr reduce(const Tensors& tensors, const c10d::ReduceOp& op, int root, Call call) override;
    WorkPtr reduce_scatter(const Tensors& outputs, const RankLists& inputs, const c10d::ReduceOp& op,
                           Call call) override;
    WorkPtr allgather(const RankLists& outputs, const Tensors& inputs, Call call) override;
    WorkPtr gather(const Tensors& outputs, const at::Tensor& input, int root, Call call) override;
    WorkPtr scatter(const at::Tensor& output, const Tensors& inputs, int root, Call call) override;
    WorkPtr alltoall(const RankLists& outputs, const RankLists& inputs, Call call) override;
    WorkPtr send(const at::Tensor& tensor, int destination, int tag, Call call) override;
    WorkPtr recv(const at::Tensor& tensor, int source, int tag, Call call) override;
    WorkPtr recv_any(const at::Tensor& tensor, int tag, Call call) override;
    WorkPtr barrier(std::optional<c10::DeviceIndex> device, Call call) override;
    void monitored_barrier(std::chrono::milliseconds timeout, bool all_ranks) override;
    void set_timeout(std::chrono::milliseconds timeout) override;
    std::unique_ptr<Collectives> split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                                       std::chrono::milliseconds timeout) override;
    void abort() override;

private:
    // One call: its tensors, and what the host does between reading the inputs and writing the outputs.
    struct Operation {
        Call call;
        const char* title;
        c10::DeviceIndex device;
        Tensors inputs;
        Tensors outputs;
        Tensors results;  // what the future of the work holds
        // Starts the collective of the host on the bytes of `staging`.
        std::function<WorkPtr(c10d::Backend& host, Staging& staging)> start;
        // Between its end and the copies to the outputs; may be empty.
        std::function<void(Staging& staging)> finish = nullptr;
    };

    WorkPtr run(Operation operation);
    WorkPtr run_point_to_point(Operation operation);
    // `start` reduces `values` by `host_op`, in place.
    using Reduce = std::function<WorkPtr(c10d::Backend& host, const at::Tensor& values, const c10d::ReduceOp& host_op)>;
    WorkPtr run_reduction(Operation operation, const c10d::ReduceOp& op, Reduce start);
    // Queues the start of the operation; `started` gets the host's work.
    using Started =
        std::function<void(const StagedWorkPtr&, const std::shared_ptr<Staging>&, const WorkPtr& host_work)>;
    WorkPtr issue(const Operation& operation, Started started);
    const CopyStreams& streams_of(c10::DeviceIndex device);

    c10::intrusive_ptr<c10d::Backend> host_;
    int rank_;
    int size_;
    std::mutex mutex_;
    std::map<c10::DeviceIndex, CopyStreams> streams_;
    std::shared_ptr<Pending> pending_ = std::make_shared<Pending>();
    std::shared_ptr<Waiters> waiters_ = std::make_shared<Waiters>();
    IssueQueue queue_;
};

}  // namespace dipu::distributed

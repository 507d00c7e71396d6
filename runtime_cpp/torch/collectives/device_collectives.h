// Collectives by the vendor's library, on streams; what it lacks goes through the host.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "communicators.h"
#include "distributed/collectives.h"
#include "watchdog.h"
#include "wire.h"

namespace dipu::collectives {

using distributed::Call;
using distributed::RankLists;
using distributed::Tensors;
using distributed::WorkPtr;

class Launch;

class DeviceCollectives final : public distributed::Collectives {
public:
    // `host` serves what the library lacks; `store` is this group's alone.
    DeviceCollectives(std::unique_ptr<distributed::Collectives> host, c10::intrusive_ptr<c10d::Store> store, int rank,
                      int size, std::chrono::milliseconds timeout);
    ~DeviceCollectives() override;

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
    std::unique_ptr<distributed::Collectives> split(const c10::intrusive_ptr<c10d::Store>& store,
                                                    const std::vector<int>& ranks,
                                                    std::chrono::milliseconds timeout) override;
    void abort() override;
    void start_group() override;
    WorkPtr end_group(const distributed::RecordedCall& record) override;
    bool groups() const override { return true; }
    void enable_timing() override { timed_ = true; }
    void connect(c10::DeviceIndex device) override;

private:
    // One call, before anything of it is launched.
    struct Operation {
        const char* title;
        Call call;
        Tensors inputs;   // of them the first tells dtype and device; else the outputs' first does
        Tensors outputs;
        Tensors results;  // what the future of the work holds
        std::function<void(Launch&)> launch;
        std::function<WorkPtr()> stage;
        std::optional<int> peer = std::nullopt;  // of a message
        Wire wire = {};
        CommunicatorPtr communicator = nullptr;

        const at::Tensor& first() const { return inputs.empty() ? outputs[0] : inputs[0]; }
    };

    // Launches it, adds it to the group, or takes it through the host.
    WorkPtr run(Operation operation, const Served& served);
    WorkPtr stage(const Operation& operation, const std::string& cause);
    // Finds its communicator, or makes it, for which the ranks meet; false where the library cannot serve them.
    bool join(Operation& operation);
    WorkPtr launch(const std::vector<Operation>& operations, const distributed::RecordedCall& group = {});
    // That of the exception which is caught right now.
    std::exception_ptr failure(const Operation& operation) const;
    // The sum of all ranks' `input` goes to the root's `output`, which counts there only.
    void reduce_to(Launch& calls, int root, const at::Tensor& input, const at::Tensor& output) const;
    // Between this rank and another of a collective that is made of messages.
    void exchange(Launch& calls, int peer, const at::Tensor& input, const at::Tensor& output) const;

    std::unique_ptr<distributed::Collectives> host_;
    int rank_;
    int size_;
    std::atomic<std::chrono::milliseconds> timeout_;
    std::atomic<bool> timed_ = false;
    Communicators communicators_;
    Watchdog watchdog_;
    std::mutex launching_;  // calls of several threads come one after another, in one order for all streams
    bool grouped_ = false;
    std::vector<Operation> group_;
    std::vector<WorkPtr> staged_;  // of the group
};

}  // namespace dipu::collectives

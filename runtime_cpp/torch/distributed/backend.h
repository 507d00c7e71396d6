// The backend `dicl` of torch.distributed: torch's calls, checked and brought to the few forms of `Collectives`.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "collectives.h"
#include "export.h"
#include "failure_signal.h"
#include "releases.h"

namespace dipu::distributed {

// What torch copies before it divides a group; there is nothing to choose.
struct DiclOptions final : c10d::Backend::Options {
    explicit DiclOptions(std::chrono::milliseconds timeout) : Options("dicl", timeout) {}
    c10::intrusive_ptr<Options> clone() const DIPU_OVERRIDE_SINCE_2_14 {
        return c10::make_intrusive<DiclOptions>(*this);
    }
};

class DIPU_API DiclBackend final : public c10d::Backend {
public:
    // `store` is the group's alone; `ranks` are its ranks' numbers among all processes.
    DiclBackend(std::unique_ptr<Collectives> collectives, c10::intrusive_ptr<c10d::Store> store, int rank,
                std::vector<uint64_t> ranks, std::chrono::milliseconds timeout);

    const std::string getBackendName() const override { return "dicl"; }
    c10::intrusive_ptr<Options> getBackendOptions() override { return options_; }
    void setTimeout(std::chrono::milliseconds timeout) override;
    // Ranks agree on the number as long as they make the same calls.
    void setSequenceNumberForGroup() override {}
    uint64_t getSequenceNumberForGroup() override { return sequence_; }
    void abort() override { collectives_->abort(); }
    bool supportsCoalescing() const override { return collectives_->groups(); }
    void startCoalescing() override;
    WorkPtr endCoalescing() override;
    void shutdown() override;
    void enableCollectivesTiming() override { collectives_->enable_timing(); }
    void eagerConnectSingleDevice(at::Device device) override;
    bool supportsSplitting() const override { return true; }
    c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                                            const c10::intrusive_ptr<Options>& options) override;

    WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
    WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
    WorkPtr allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override;
    WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
    WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
    WorkPtr allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                const c10d::AllgatherOptions& options) override;
    WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
    WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                            const c10d::AllgatherOptions& options) override;
    WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                           const c10d::ReduceScatterOptions& options) override;
    WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                 const c10d::ReduceScatterOptions& options) override;
    WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                            const c10d::ReduceScatterOptions& options) override;
    WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
    WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ScatterOptions& options) override;
    WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;
    WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                          std::vector<int64_t>& input_splits, const c10d::AllToAllOptions& options) override;
    WorkPtr send(Tensors& tensors, int destination, int tag) override;
    WorkPtr recv(Tensors& tensors, int source, int tag) override;
    WorkPtr recvAnysource(Tensors& tensors, int tag) override;
    WorkPtr barrier(const c10d::BarrierOptions& options) override;
    void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;

private:
    // Counts the call, as each rank does, and records it by its name for torch's tool.
    Call call(c10d::OpType type, std::chrono::milliseconds timeout, bool async, const char* name, const Tensors& inputs,
              const Tensors& outputs);
    // Between two ranks; messages of one batch have one number.
    Call message(c10d::OpType type);
    RecordedCall record(const std::string& name, const Tensors& inputs, const Tensors& outputs, bool is_message,
                        std::chrono::milliseconds timeout);
    WorkPtr reduce_scatter_pieces(const Tensors& outputs, const RankLists& inputs, const Tensors& whole,
                                  const c10d::ReduceScatterOptions& options, c10d::OpType type, const char* name);

    std::unique_ptr<Collectives> collectives_;
    c10::intrusive_ptr<c10d::Store> store_;
    std::map<std::vector<int>, int> parts_;  // how often each list of ranks was made a group
    c10::intrusive_ptr<Options> options_;
    std::atomic<uint64_t> sequence_ = 0;
    std::atomic<uint64_t> messages_ = 0;
    bool grouped_ = false;
    bool group_has_messages_ = false;
    GroupRecord record_;
    std::shared_ptr<FailureSignal> signal_;
};

}  // namespace dipu::distributed

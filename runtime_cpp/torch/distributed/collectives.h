// What a process group asks of its devices; through the host (staged_collectives.h), or by the vendor's library
// (collectives/device_collectives.h).
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "flight_recorder.h"
#include "tensor_lists.h"

namespace dipu::distributed {

using Tensors = std::vector<at::Tensor>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// What is common to all calls.
struct Call {
    c10d::OpType type;
    std::chrono::milliseconds timeout = c10d::kUnsetTimeout;  // unset: the group's
    uint64_t sequence = 0;
    bool async = true;  // false where the caller waits at once
    bool even = false;  // of an all_to_all: each rank knows that all parts are equal
    RecordedCall record = {};
};

// The tensors of a call are dense, lie on one device, and may be strided; each is read and written in the order of its
// elements. Calls come in the same order on all ranks. The inputs are read after the work queued on the caller's current
// stream; once a work's wait() has returned, the outputs are visible to every stream. A list of lists has one list per
// rank. What cannot be served throws c10::Error at once; what fails later is the exception of the work.
class Collectives {
public:
    Collectives() = default;
    virtual ~Collectives() = default;
    Collectives(const Collectives&) = delete;
    Collectives& operator=(const Collectives&) = delete;

    virtual WorkPtr broadcast(const Tensors& tensors, int root, Call call) = 0;
    // The tensors of one reduction have one dtype.
    virtual WorkPtr allreduce(const Tensors& tensors, const c10d::ReduceOp& op, Call call) = 0;
    virtual WorkPtr reduce(const Tensors& tensors, const c10d::ReduceOp& op, int root, Call call) = 0;
    virtual WorkPtr reduce_scatter(const Tensors& outputs, const RankLists& inputs, const c10d::ReduceOp& op,
                                   Call call) = 0;
    virtual WorkPtr allgather(const RankLists& outputs, const Tensors& inputs, Call call) = 0;
    // `outputs` of gather and `inputs` of scatter have one tensor per rank on the root and none elsewhere.
    virtual WorkPtr gather(const Tensors& outputs, const at::Tensor& input, int root, Call call) = 0;
    virtual WorkPtr scatter(const at::Tensor& output, const Tensors& inputs, int root, Call call) = 0;
    virtual WorkPtr alltoall(const RankLists& outputs, const RankLists& inputs, Call call) = 0;  // one for each rank
    virtual WorkPtr send(const at::Tensor& tensor, int destination, int tag, Call call) = 0;
    virtual WorkPtr recv(const at::Tensor& tensor, int source, int tag, Call call) = 0;
    virtual WorkPtr recv_any(const at::Tensor& tensor, int tag, Call call) = 0;
    // Calls between the two are one launch, and have its work; they return null.
    virtual bool groups() const { return false; }
    virtual void start_group() {}
    virtual WorkPtr end_group(const RecordedCall& /*record*/) { return nullptr; }
    // Waits for the current stream of `device` on every rank; without one, of a device that the group uses.
    virtual WorkPtr barrier(std::optional<c10::DeviceIndex> device, Call call) = 0;

    // The host alone; throws on the first rank that does not answer, or, if `all_ranks`, names all that do not.
    virtual void monitored_barrier(std::chrono::milliseconds timeout, bool all_ranks) = 0;
    virtual void set_timeout(std::chrono::milliseconds timeout) = 0;
    virtual void enable_timing() {}  // of works made from now on, where that is possible
    // Meets the other ranks now, and not at the first call.
    virtual void connect(c10::DeviceIndex) {}
    // Those of some of the ranks, in this order, which meet by `store`; the others do not call.
    virtual std::unique_ptr<Collectives> split(const c10::intrusive_ptr<c10d::Store>& store,
                                               const std::vector<int>& ranks, std::chrono::milliseconds timeout) = 0;
    // Ends every unfinished work with an error; further calls throw.
    virtual void abort() = 0;
};

}  // namespace dipu::distributed

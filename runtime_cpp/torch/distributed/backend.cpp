// Brings each collective of torch.distributed to one of the forms that `Collectives` has.
#include "backend.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/util/StringUtil.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "device/device.h"
#include "releases.h"
#include "tensor_lists.h"

namespace dipu::distributed {
namespace {

// A list of one tensor from each rank as the sizes that torch's tool expects: those of all in one.
Tensors as_one(const Tensors& list) {
    const auto alike = [&](const at::Tensor& tensor) { return tensor.sizes() == list[0].sizes(); };
    if (!std::all_of(list.begin(), list.end(), alike)) {
        return list;
    }
    std::vector<int64_t> sizes = list[0].sizes().vec();
    sizes.insert(sizes.begin(), static_cast<int64_t>(list.size()));
    const at::AutoDispatchBelowADInplaceOrView guard;
    return {list[0].expand(sizes)};
}

}  // namespace

using c10d::OpType;

DiclBackend::DiclBackend(std::unique_ptr<Collectives> collectives, c10::intrusive_ptr<c10d::Store> store, int rank,
                         std::vector<uint64_t> ranks, std::chrono::milliseconds timeout)
    : Backend(rank, static_cast<int>(ranks.size())),
      collectives_(std::move(collectives)),
      store_(std::move(store)),
      options_(c10::make_intrusive<DiclOptions>(timeout)),
      record_(std::move(ranks)),
      signal_(FailureSignal::of_process(store_, static_cast<int>(record_.ranks()[rank]))) {
    init();
}

// Without the lock of Python, which a thread may need to write the record.
void DiclBackend::shutdown() {
    if (signal_ != nullptr) {
        signal_->stop();
    }
}

void DiclBackend::startCoalescing() {
    collectives_->start_group();
    grouped_ = true;
    group_has_messages_ = false;
}

WorkPtr DiclBackend::endCoalescing() {
    grouped_ = false;
    // torch's tool wants the end of a batch of messages as an entry of its own.
    return collectives_->end_group(group_has_messages_ ? record("coalesced", {}, {}, true, options_->timeout)
                                                       : RecordedCall());
}

void DiclBackend::eagerConnectSingleDevice(at::Device device) { collectives_->connect(device.index()); }

c10::intrusive_ptr<c10d::Backend> DiclBackend::split(const c10::intrusive_ptr<c10d::Store>&,
                                                     const std::vector<int>& ranks,
                                                     const c10::intrusive_ptr<Options>& options) {
    const auto own = std::find(ranks.begin(), ranks.end(), getRank());
    if (own == ranks.end()) {
        return nullptr;
    }
    // torch's name of a part, which its store has as well, depends on how many groups a rank is in: ranks that were left out of
    // an earlier division have another one. All ranks of a part know its ranks, and how often they were made a group.
    const std::string name = c10::str("split/", c10::Join("_", ranks), "/", parts_[ranks]++, "/");
    const auto store = c10::make_intrusive<c10d::PrefixStore>(name, store_);
    std::vector<uint64_t> numbers;
    for (const int rank : ranks) {
        numbers.push_back(record_.ranks()[rank]);
    }
    return c10::make_intrusive<DiclBackend>(collectives_->split(store, ranks, options->timeout), store,
                                            static_cast<int>(own - ranks.begin()), std::move(numbers),
                                            options->timeout);
}

void DiclBackend::setTimeout(std::chrono::milliseconds timeout) {
    collectives_->set_timeout(timeout);
    options_->timeout = timeout;
}

RecordedCall DiclBackend::record(const std::string& name, const Tensors& inputs, const Tensors& outputs,
                                 bool is_message, std::chrono::milliseconds timeout) {
    return record_.add(*this, {.name = name,
                               .inputs = inputs,
                               .outputs = outputs,
                               .collectives = sequence_,
                               .messages = messages_,
                               .is_message = is_message,
                               .timeout = timeout == c10d::kUnsetTimeout ? options_->timeout : timeout});
}

Call DiclBackend::call(OpType type, std::chrono::milliseconds timeout, bool async, const char* name,
                       const Tensors& inputs, const Tensors& outputs) {
    const uint64_t sequence = ++sequence_;
    return {.type = type,
            .timeout = timeout,
            .sequence = sequence,
            .async = async,
            .record = record(name, inputs, outputs, false, timeout)};
}

Call DiclBackend::message(OpType type) {
    if (!grouped_ || !std::exchange(group_has_messages_, true)) {
        ++messages_;
    }
    return {.type = type, .sequence = messages_};
}

WorkPtr DiclBackend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
    check_tensors("broadcast", tensors);
    return collectives_->broadcast(
        tensors, static_cast<int>(options.rootRank),
        call(OpType::BROADCAST, options.timeout, options.asyncOp, "broadcast", tensors, tensors));
}

WorkPtr DiclBackend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
    check_tensors("all_reduce", tensors);
    check_one_dtype("all_reduce", tensors);
    return collectives_->allreduce(
        tensors, options.reduceOp,
        call(OpType::ALLREDUCE, options.timeout, options.asyncOp, "all_reduce", tensors, tensors));
}

WorkPtr DiclBackend::allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
    check_tensors("all_reduce", tensors);
    check_one_dtype("all_reduce", tensors);
    return collectives_->allreduce(
        tensors, options.reduceOp,
        call(OpType::ALLREDUCE_COALESCED, options.timeout, options.asyncOp, "allreduce_coalesced", tensors, tensors));
}

WorkPtr DiclBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
    check_tensors("reduce", tensors);
    check_one_dtype("reduce", tensors);
    return collectives_->reduce(tensors, options.reduceOp, static_cast<int>(options.rootRank),
                                call(OpType::REDUCE, options.timeout, options.asyncOp, "reduce", tensors, tensors));
}

WorkPtr DiclBackend::allgather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
    check_tensors("all_gather", inputs);
    const at::Tensor& input = only("all_gather", inputs);
    TORCH_CHECK(outputs.size() == 1 && static_cast<int>(outputs[0].size()) == getSize(),
                "dicl: all_gather takes a list of ", getSize(), " tensors, one for each rank");
    for (const at::Tensor& output : outputs[0]) {
        check_tensors("all_gather", {input, output});
        check_one_dtype("all_gather", {input, output});
    }
    check_same_elements("all_gather", {outputs[0][getRank()]}, 1, inputs);
    return collectives_->allgather(
        RankLists::each(outputs[0]), inputs,
        call(OpType::ALLGATHER, options.timeout, options.asyncOp, "all_gather", inputs, as_one(outputs[0])));
}

WorkPtr DiclBackend::allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                         const c10d::AllgatherOptions& options) {
    check_tensors("all_gather_coalesced", inputs);
    TORCH_CHECK(static_cast<int>(outputs.size()) == getSize(), "dicl: all_gather_coalesced takes ", getSize(),
                " lists of tensors, one for each rank");
    for (const Tensors& list : outputs) {
        check_tensors("all_gather_coalesced", list);
        check_same_elements("all_gather_coalesced", list, 1, inputs);
    }
    return collectives_->allgather(outputs, inputs,
                                   call(OpType::ALLGATHER_COALESCED, options.timeout, options.asyncOp,
                                        "ALLGATHER_coalesced", inputs, as_one(outputs[0])));
}

WorkPtr DiclBackend::_allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) {
    check_tensors("all_gather_into_tensor", {input, output});
    return collectives_->allgather(
        RankLists::divided("all_gather_into_tensor", {output}, getSize(), {input}), {input},
        call(OpType::_ALLGATHER_BASE, options.timeout, options.asyncOp, "_all_gather_base", {input}, {output}));
}

WorkPtr DiclBackend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                     const c10d::AllgatherOptions& options) {
    check_tensors("all_gather_into_tensor", inputs);
    check_tensors("all_gather_into_tensor", outputs);
    return collectives_->allgather(
        RankLists::divided("all_gather_into_tensor", outputs, getSize(), inputs), inputs,
        call(OpType::COALESCED, options.timeout, options.asyncOp, "all_gather_into_tensor_coalesced", inputs, outputs));
}

WorkPtr DiclBackend::reduce_scatter_pieces(const Tensors& outputs, const RankLists& inputs, const Tensors& whole,
                                           const c10d::ReduceScatterOptions& options, OpType type, const char* name) {
    check_one_dtype("reduce_scatter", outputs);
    return collectives_->reduce_scatter(outputs, inputs, options.reduceOp,
                                        call(type, options.timeout, options.asyncOp, name, whole, outputs));
}

WorkPtr DiclBackend::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                    const c10d::ReduceScatterOptions& options) {
    check_tensors("reduce_scatter", outputs);
    const at::Tensor& output = only("reduce_scatter", outputs);
    TORCH_CHECK(inputs.size() == 1 && static_cast<int>(inputs[0].size()) == getSize(),
                "dicl: reduce_scatter takes a list of ", getSize(), " tensors, one for each rank");
    for (const at::Tensor& input : inputs[0]) {
        check_tensors("reduce_scatter", {output, input});
    }
    check_same_elements("reduce_scatter", {inputs[0][getRank()]}, 1, outputs);
    return reduce_scatter_pieces(outputs, RankLists::each(inputs[0]), as_one(inputs[0]), options,
                                 OpType::REDUCE_SCATTER, "reduce_scatter");
}

WorkPtr DiclBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                          const c10d::ReduceScatterOptions& options) {
    check_tensors("reduce_scatter_tensor", {output, input});
    return reduce_scatter_pieces({output}, RankLists::divided("reduce_scatter_tensor", {input}, getSize(), {output}),
                                 {input}, options, OpType::_REDUCE_SCATTER_BASE, "_reduce_scatter_base");
}

WorkPtr DiclBackend::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                     const c10d::ReduceScatterOptions& options) {
    check_tensors("reduce_scatter_tensor", outputs);
    check_tensors("reduce_scatter_tensor", inputs);
    return reduce_scatter_pieces(outputs, RankLists::divided("reduce_scatter_tensor", inputs, getSize(), outputs),
                                 inputs, options, coalesced_scatter<OpType>(), "reduce_scatter_tensor_coalesced");
}

WorkPtr DiclBackend::gather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::GatherOptions& options) {
    check_tensors("gather", inputs);
    const at::Tensor& input = only("gather", inputs);
    const bool receives = getRank() == options.rootRank;
    TORCH_CHECK(receives ? outputs.size() == 1 && static_cast<int>(outputs[0].size()) == getSize() : outputs.empty(),
                "dicl: gather takes ", getSize(),
                " tensors for the result on the rank that receives it, and none on the others");
    const Tensors list = receives ? outputs[0] : Tensors();
    for (const at::Tensor& output : list) {
        check_tensors("gather", {input, output});
        check_same_elements("gather", {output}, 1, inputs);
    }
    return collectives_->gather(list, input, static_cast<int>(options.rootRank),
                                call(OpType::GATHER, options.timeout, options.asyncOp, "gather", inputs, list));
}

WorkPtr DiclBackend::scatter(Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ScatterOptions& options) {
    check_tensors("scatter", outputs);
    const at::Tensor& output = only("scatter", outputs);
    const bool sends = getRank() == options.rootRank;
    TORCH_CHECK(sends ? inputs.size() == 1 && static_cast<int>(inputs[0].size()) == getSize() : inputs.empty(),
                "dicl: scatter takes ", getSize(), " tensors on the rank that sends them, and none on the others");
    const Tensors list = sends ? inputs[0] : Tensors();
    for (const at::Tensor& input : list) {
        check_tensors("scatter", {output, input});
        check_same_elements("scatter", {input}, 1, outputs);
    }
    return collectives_->scatter(output, list, static_cast<int>(options.rootRank),
                                 call(OpType::SCATTER, options.timeout, options.asyncOp, "scatter", list, outputs));
}

WorkPtr DiclBackend::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) {
    check_tensors("all_to_all", inputs);
    check_tensors("all_to_all", outputs);
    check_tensors("all_to_all", {inputs[0], outputs[0]});
    TORCH_CHECK(static_cast<int>(inputs.size()) == getSize() && static_cast<int>(outputs.size()) == getSize(),
                "dicl: all_to_all takes ", getSize(), " tensors on both sides, one for each rank, not ", inputs.size(),
                " and ", outputs.size());
    return collectives_->alltoall(
        RankLists::each(outputs), RankLists::each(inputs),
        call(OpType::ALLTOALL, options.timeout, options.asyncOp, "all_to_all", inputs, outputs));
}

WorkPtr DiclBackend::alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                                   std::vector<int64_t>& input_splits, const c10d::AllToAllOptions& options) {
    check_tensors("all_to_all_single", {input, output});
    check_one_dtype("all_to_all_single", {input, output});
    Call all = call(OpType::ALLTOALL_BASE, options.timeout, options.asyncOp, "all_to_all", {input}, {output});
    all.even = output_splits.empty() && input_splits.empty();
    return collectives_->alltoall(RankLists::rows("all_to_all_single", output, output_splits, getSize()),
                                  RankLists::rows("all_to_all_single", input, input_splits, getSize()), all);
}

WorkPtr DiclBackend::send(Tensors& tensors, int destination, int tag) {
    check_tensors("send", tensors);
    Call call = message(OpType::SEND);
    call.record = record(c10::str("send ", getRank(), "->", destination), tensors, {}, true, options_->timeout);
    return collectives_->send(only("send", tensors), destination, tag, call);
}

WorkPtr DiclBackend::recv(Tensors& tensors, int source, int tag) {
    check_tensors("recv", tensors);
    Call call = message(OpType::RECV);
    call.record = record(c10::str("recv ", getRank(), "<-", source), {}, tensors, true, options_->timeout);
    return collectives_->recv(only("recv", tensors), source, tag, call);
}

// Not recorded: torch's tool wants to know who sends.
WorkPtr DiclBackend::recvAnysource(Tensors& tensors, int tag) {
    check_tensors("recv", tensors);
    return collectives_->recv_any(only("recv", tensors), tag, message(OpType::RECVANYSOURCE));
}

WorkPtr DiclBackend::barrier(const c10d::BarrierOptions& options) {
    std::optional<c10::DeviceIndex> device;
    if (options.device.has_value() && options.device->is_privateuseone() && options.device->has_index()) {
        device = options.device->index();
    } else if (!options.device_ids.empty()) {
        device = checked_device(static_cast<c10::DeviceIndex>(options.device_ids[0]));
    }
    return collectives_->barrier(device, call(OpType::BARRIER, options.timeout, options.asyncOp, "barrier", {}, {}));
}

void DiclBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
    collectives_->monitored_barrier(options.timeout, wait_all_ranks);
}

}  // namespace dipu::distributed

// What each collective is of the table's functions, and the course of a launch.
#include "device_collectives.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/StreamGuard.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>
#include <utility>

#include "device/stream.h"
#include "distributed/failure_signal.h"
#include "interposer/fallback.h"
#include "launch.h"
#include "report.h"
#include "wrapper/status.h"

namespace dipu::collectives {
namespace {

using c10d::OpType;

constexpr const char* kTagged = "the vendor's library has no tags";

bool equal_sizes(const Tensors& tensors) {
    return std::all_of(tensors.begin(), tensors.end(),
                       [&](const at::Tensor& tensor) { return tensor.numel() == tensors[0].numel(); });
}

// What a reduction whose result goes to one rank is asked of the table as.
diopiCollective_t reduction_to_one() {
    return table()->reduce != nullptr ? diopiCollectiveReduce : diopiCollectiveAllReduce;
}

// Several works as one: of a group of which the library does not serve all.
class JoinedWork final : public c10d::Work {
public:
    explicit JoinedWork(std::vector<WorkPtr> works) : works_(std::move(works)) {}

    bool isCompleted() override {
        return std::all_of(works_.begin(), works_.end(), [](const WorkPtr& work) { return work->isCompleted(); });
    }
    bool isSuccess() const override {
        return std::all_of(works_.begin(), works_.end(), [](const WorkPtr& work) { return work->isSuccess(); });
    }
    bool wait(std::chrono::milliseconds timeout) override {
        for (const WorkPtr& work : works_) {
            work->wait(timeout);
        }
        return true;
    }
    void synchronize() override { wait(kNoTimeout); }

private:
    std::vector<WorkPtr> works_;
};

}  // namespace

DeviceCollectives::DeviceCollectives(std::unique_ptr<distributed::Collectives> host,
                                     c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                                     std::chrono::milliseconds timeout)
    : host_(std::move(host)),
      rank_(rank),
      size_(size),
      timeout_(timeout),
      communicators_(std::move(store), rank, size),
      watchdog_([this] { communicators_.abort(); }) {}

DeviceCollectives::~DeviceCollectives() {
    if (watchdog_.stop()) {
        communicators_.abort();  // to leave one may wait until the other ranks do
    }
    communicators_.leave();
}

std::exception_ptr DeviceCollectives::failure(const Operation& operation) const {
    std::string why = "an unknown error";
    try {
        throw;
    } catch (const c10::Error& error) {
        why = error.what_without_backtrace();
    } catch (const std::exception& error) {
        why = error.what();
    }
    const DeviceWork::Facts facts{.rank = rank_,
                                  .size = size_,
                                  .type = operation.call.type,
                                  .title = operation.title,
                                  .sequence = operation.call.sequence,
                                  .timeout = timeout_,
                                  .blocks = false,
                                  .timed = false};
    return DeviceWork::failed(facts, operation.results, why);
}

WorkPtr DeviceCollectives::stage(const Operation& operation, const std::string& cause) {
    refuse(cause.c_str());
    FallbackRecord record(operation.title);  // refused where strict
    int64_t bytes = 0;
    for (const Tensors* list : {&operation.inputs, &operation.outputs}) {
        for (const at::Tensor& tensor : *list) {
            bytes += static_cast<int64_t>(tensor.nbytes());
        }
    }
    record.add_bytes(bytes);
    count_collective(operation.title, operation.first().scalar_type(), cause);
    return operation.stage();
}

WorkPtr DeviceCollectives::run(Operation operation, const Served& served) {
    watchdog_.failure()->rethrow();
    if (operation.call.timeout == c10d::kUnsetTimeout) {
        operation.call.timeout = timeout_.load();
    }
    if (const char* const* cause = std::get_if<const char*>(&served)) {
        const WorkPtr work = stage(operation, *cause);
        if (grouped_) {
            staged_.push_back(work);
        }
        return work;
    }
    operation.wire = std::get<Wire>(served);
    if (grouped_) {
        group_.push_back(std::move(operation));
        return nullptr;
    }
    return join(operation) ? launch({std::move(operation)}) : stage(operation, communicators_.why());
}

bool DeviceCollectives::join(Operation& operation) {
    const c10::DeviceIndex device = operation.first().device().index();
    try {
        operation.communicator = operation.peer ? communicators_.pair(device, *operation.peer, operation.call.timeout)
                                                : communicators_.all(device, operation.call.timeout);
    } catch (...) {
        std::rethrow_exception(failure(operation));
    }
    if (operation.communicator == nullptr) {
        return false;
    }
    count_collective(operation.title, operation.first().scalar_type(), "");
    return true;
}

WorkPtr DeviceCollectives::launch(const std::vector<Operation>& operations, const distributed::RecordedCall& group) {
    const Operation& first = operations[0];
    const c10::DeviceIndex device = first.first().device().index();
    const c10::Stream caller = current_stream(device);
    // A call that nobody can overlap needs no other stream; the vendor's functions wait on the caller's own.
    const bool inline_call = operations.size() == 1 && !first.call.async;
    const c10::Stream stream = inline_call ? caller : first.communicator->stream();
    const DeviceScope scope(device);
    const at::AutoDispatchBelowADInplaceOrView no_gradients;
    Tensors inputs;
    Tensors results;
    std::vector<CommunicatorPtr> communicators;
    std::vector<distributed::RecordedCall> records{group};
    for (const Operation& operation : operations) {
        records.push_back(operation.call.record);
        inputs.insert(inputs.end(), operation.inputs.begin(), operation.inputs.end());
        results.insert(results.end(), operation.results.begin(), operation.results.end());
        if (std::find(communicators.begin(), communicators.end(), operation.communicator) == communicators.end()) {
            communicators.push_back(operation.communicator);
        }
    }
    const std::lock_guard<std::mutex> lock(launching_);
    std::vector<Communicator::Use> uses;  // until the watchdog has the work
    try {
        for (const CommunicatorPtr& communicator : communicators) {
            uses.emplace_back(communicator);
        }
    } catch (const c10::Error&) {
        watchdog_.failure()->rethrow();  // why it was aborted
        std::rethrow_exception(failure(first));
    }
    if (!inline_call) {
        Event called(device, false);
        called.record(caller);
        called.block(stream);
    }
    const c10::StreamGuard on_stream(stream);
    Launch calls(stream);
    for (const Operation& operation : operations) {
        calls.enter(operation.communicator->handle(), operation.wire);
        operation.launch(calls);
    }
    const auto work = c10::make_intrusive<DeviceWork>(
        DeviceWork::Facts{.rank = rank_,
                          .size = size_,
                          .type = first.call.type,
                          .title = first.title,
                          .sequence = first.call.sequence,
                          .timeout = first.call.timeout,
                          .blocks = first.call.type == OpType::BARRIER,
                          .timed = timed_},
        inputs, std::move(results), stream, caller, std::move(communicators), std::move(records), watchdog_.failure());
    work->begin();
    try {
        calls.submit();
    } catch (const c10::Error&) {
        const std::exception_ptr error = failure(first);
        uses.clear();
        distributed::FailureSignal::fail();
        watchdog_.fail(error);
        watchdog_.failure()->rethrow();
        throw;
    }
    work->launched(calls.take_used());
    watchdog_.add(work);
    return work;
}

void DeviceCollectives::start_group() {
    TORCH_CHECK(!grouped_, "dicl: coalescing has started already");
    grouped_ = true;
}

WorkPtr DeviceCollectives::end_group(const distributed::RecordedCall& record) {
    TORCH_CHECK(grouped_, "dicl: coalescing has not started");
    grouped_ = false;
    std::vector<Operation> operations = std::exchange(group_, {});
    std::vector<WorkPtr> works = std::exchange(staged_, {});
    // In one order on all ranks: pairs meet here for the first time, and the kernels of several are on one stream; none
    // waits for a later one.
    std::stable_sort(operations.begin(), operations.end(), [&](const Operation& a, const Operation& b) {
        const auto place = [&](const Operation& operation) {
            return operation.peer ? std::pair(std::min(rank_, *operation.peer), std::max(rank_, *operation.peer))
                                  : std::pair(-1, -1);
        };
        return place(a) < place(b);
    });
    std::vector<Operation> joined;
    for (Operation& operation : operations) {
        if (join(operation)) {
            joined.push_back(std::move(operation));
        } else {
            works.push_back(stage(operation, communicators_.why()));
        }
    }
    if (!joined.empty()) {
        works.push_back(launch(joined, record));
    }
    return works.size() == 1 ? works[0] : WorkPtr(c10::make_intrusive<JoinedWork>(std::move(works)));
}

void DeviceCollectives::connect(c10::DeviceIndex device) { communicators_.all(device, timeout_); }

WorkPtr DeviceCollectives::broadcast(const Tensors& tensors, int root, Call call) {
    const bool sends = rank_ == root;
    return run({.title = "dicl:broadcast",
                .call = call,
                .inputs = sends ? tensors : Tensors(),
                .outputs = sends ? Tensors() : tensors,
                .results = tensors,
                .launch =
                    [tensors, root, sends](Launch& calls) {
                        for (const at::Tensor& tensor : tensors) {
                            calls.broadcast(sends ? calls.read(tensor) : calls.write(tensor), root);
                        }
                    },
                .stage = [this, tensors, root, call] { return host_->broadcast(tensors, root, call); }},
               moved(diopiCollectiveBroadcast, tensors));
}

WorkPtr DeviceCollectives::allreduce(const Tensors& tensors, const c10d::ReduceOp& op, Call call) {
    return run({.title = "dicl:all_reduce",
                .call = call,
                .inputs = tensors,
                .outputs = tensors,
                .results = tensors,
                .launch =
                    [tensors](Launch& calls) {
                        for (const at::Tensor& tensor : tensors) {
                            calls.all_reduce(calls.update(tensor));
                        }
                    },
                .stage = [this, tensors, op, call] { return host_->allreduce(tensors, op, call); }},
               reduced(diopiCollectiveAllReduce, tensors[0].scalar_type(), op));
}

void DeviceCollectives::reduce_to(Launch& calls, int root, const at::Tensor& input, const at::Tensor& output) const {
    const at::Tensor values = calls.read(input);
    if (table()->reduce != nullptr) {
        calls.reduce(values, rank_ == root ? calls.write(output) : values, root);
        return;
    }
    const at::Tensor sums = rank_ == root ? calls.write(output) : at::empty_like(values);
    sums.copy_(values);
    calls.all_reduce(sums);
}

WorkPtr DeviceCollectives::reduce(const Tensors& tensors, const c10d::ReduceOp& op, int root, Call call) {
    return run({.title = "dicl:reduce",
                .call = call,
                .inputs = tensors,
                .outputs = rank_ == root ? tensors : Tensors(),
                .results = tensors,
                .launch =
                    [this, tensors, root](Launch& calls) {
                        for (const at::Tensor& tensor : tensors) {
                            reduce_to(calls, root, tensor, tensor);
                        }
                    },
                .stage = [this, tensors, op, root, call] { return host_->reduce(tensors, op, root, call); }},
               reduced(reduction_to_one(), tensors[0].scalar_type(), op));
}

WorkPtr DeviceCollectives::reduce_scatter(const Tensors& outputs, const RankLists& inputs, const c10d::ReduceOp& op,
                                          Call call) {
    bool even = true;
    for (std::size_t n = 0; n < outputs.size(); ++n) {
        even = even && equal_sizes(inputs.nth(n));
    }
    return run(
        {.title = "dicl:reduce_scatter",
         .call = call,
         .inputs = inputs.all(),
         .outputs = outputs,
         .results = outputs,
         .launch =
             [this, outputs, inputs, even](Launch& calls) {
                 for (std::size_t n = 0; n < outputs.size(); ++n) {
                     if (even) {
                         calls.reduce_scatter(calls.read_parts(inputs.nth(n)), calls.write(outputs[n]));
                         continue;
                     }
                     const Tensors parts = inputs.nth(n);
                     for (int root = 0; root < size_; ++root) {
                         reduce_to(calls, root, parts[root], outputs[n]);
                     }
                 }
             },
         .stage = [this, outputs, inputs, op, call] { return host_->reduce_scatter(outputs, inputs, op, call); }},
        reduced(even ? diopiCollectiveReduceScatter : reduction_to_one(), outputs[0].scalar_type(), op));
}

WorkPtr DeviceCollectives::allgather(const RankLists& outputs, const Tensors& inputs, Call call) {
    const Tensors all = outputs.all();
    bool even = true;
    for (std::size_t n = 0; n < inputs.size(); ++n) {
        even = even && equal_sizes(outputs.nth(n));
    }
    return run({.title = "dicl:all_gather",
                .call = call,
                .inputs = inputs,
                .outputs = all,
                .results = all,
                .launch =
                    [this, outputs, inputs, even](Launch& calls) {
                        for (std::size_t n = 0; n < inputs.size(); ++n) {
                            const at::Tensor input = calls.read(inputs[n]);
                            const Tensors parts = outputs.nth(n);
                            if (even) {
                                calls.all_gather(input, calls.write_parts(parts));
                                continue;
                            }
                            for (int peer = 0; peer < size_; ++peer) {
                                exchange(calls, peer, input, parts[peer]);
                            }
                        }
                    },
                .stage =
                    [this, outputs, inputs, even, call] {
                        TORCH_CHECK(even, "dicl: all_gather through the host takes tensors of one size");
                        return host_->allgather(outputs, inputs, call);
                    }},
               moved(even ? diopiCollectiveAllGather : diopiCollectivePointToPoint, inputs));
}

void DeviceCollectives::exchange(Launch& calls, int peer, const at::Tensor& input, const at::Tensor& output) const {
    if (peer == rank_) {
        calls.copy(output, input.view(output.sizes()));
        return;
    }
    calls.send(input, peer);
    calls.recv(calls.write(output), peer);
}

WorkPtr DeviceCollectives::gather(const Tensors& outputs, const at::Tensor& input, int root, Call call) {
    return run({.title = "dicl:gather",
                .call = call,
                .inputs = {input},
                .outputs = outputs,
                .results = outputs,
                .launch =
                    [this, outputs, input, root](Launch& calls) {
                        if (rank_ != root) {
                            calls.send(calls.read(input), root);
                            return;
                        }
                        for (int peer = 0; peer < size_; ++peer) {
                            if (peer == root) {
                                calls.copy(outputs[peer], input);
                            } else {
                                calls.recv(calls.write(outputs[peer]), peer);
                            }
                        }
                    },
                .stage = [this, outputs, input, root, call] { return host_->gather(outputs, input, root, call); }},
               moved(diopiCollectivePointToPoint, {input}));
}

WorkPtr DeviceCollectives::scatter(const at::Tensor& output, const Tensors& inputs, int root, Call call) {
    return run({.title = "dicl:scatter",
                .call = call,
                .inputs = inputs,
                .outputs = {output},
                .results = {output},
                .launch =
                    [this, output, inputs, root](Launch& calls) {
                        if (rank_ != root) {
                            calls.recv(calls.write(output), root);
                            return;
                        }
                        for (int peer = 0; peer < size_; ++peer) {
                            if (peer == root) {
                                calls.copy(output, inputs[peer]);
                            } else {
                                calls.send(calls.read(inputs[peer]), peer);
                            }
                        }
                    },
                .stage = [this, output, inputs, root, call] { return host_->scatter(output, inputs, root, call); }},
               moved(diopiCollectivePointToPoint, {output}));
}

WorkPtr DeviceCollectives::alltoall(const RankLists& outputs, const RankLists& inputs, Call call) {
    // Every rank has to take the same way, and knows the sizes of its own parts alone: the library's function is for equal
    // parts that lie as it wants them, which is what a call without split sizes has.
    const bool even = call.even && table()->all_to_all != nullptr;
    return run({.title = "dicl:all_to_all",
                .call = call,
                .inputs = inputs.all(),
                .outputs = outputs.all(),
                .results = outputs.all(),
                .launch =
                    [this, outputs, inputs, even](Launch& calls) {
                        if (even) {
                            calls.all_to_all(inputs.nth(0), outputs.nth(0), size_);
                            return;
                        }
                        const std::vector<Tensors> sent = inputs.lists();
                        const std::vector<Tensors> received = outputs.lists();
                        for (int peer = 0; peer < size_; ++peer) {
                            const at::Tensor& input = sent[peer][0];
                            const at::Tensor& output = received[peer][0];
                            if (peer == rank_) {
                                calls.copy(output, input.reshape(output.sizes()));
                                continue;
                            }
                            if (input.numel() != 0) {
                                calls.send(calls.read(input), peer);
                            }
                            if (output.numel() != 0) {
                                calls.recv(calls.write(output), peer);
                            }
                        }
                    },
                .stage = [this, outputs, inputs, call] { return host_->alltoall(outputs, inputs, call); }},
               moved(even ? diopiCollectiveAllToAll : diopiCollectivePointToPoint, inputs.all()));
}

WorkPtr DeviceCollectives::send(const at::Tensor& tensor, int destination, int tag, Call call) {
    return run({.title = "dicl:send",
                .call = call,
                .inputs = {tensor},
                .outputs = {},
                .results = {tensor},
                .launch = [this, tensor, destination](
                              Launch& calls) { calls.send(calls.read(tensor), communicators_.place(destination)); },
                .stage = [this, tensor, destination, tag, call] { return host_->send(tensor, destination, tag, call); },
                .peer = destination},
               tag == 0 ? moved(diopiCollectivePointToPoint, {tensor}) : Served(kTagged));
}

WorkPtr DeviceCollectives::recv(const at::Tensor& tensor, int source, int tag, Call call) {
    return run({.title = "dicl:recv",
                .call = call,
                .inputs = {},
                .outputs = {tensor},
                .results = {tensor},
                .launch = [this, tensor,
                           source](Launch& calls) { calls.recv(calls.write(tensor), communicators_.place(source)); },
                .stage = [this, tensor, source, tag, call] { return host_->recv(tensor, source, tag, call); },
                .peer = source},
               tag == 0 ? moved(diopiCollectivePointToPoint, {tensor}) : Served(kTagged));
}

WorkPtr DeviceCollectives::recv_any(const at::Tensor& tensor, int tag, Call call) {
    TORCH_CHECK(tag != 0,
                "dicl: a receive from any rank takes the way through the host, which messages without a tag do "
                "not: give both calls a tag, or set DIPU_COLLECTIVES=host");
    return run({.title = "dicl:recv",
                .call = call,
                .inputs = {},
                .outputs = {tensor},
                .results = {tensor},
                .launch = nullptr,
                .stage = [this, tensor, tag, call] { return host_->recv_any(tensor, tag, call); }},
               "a receive from any rank");
}

WorkPtr DeviceCollectives::barrier(std::optional<c10::DeviceIndex> given, Call call) {
    // Of the communicator that the group made first, which every rank has.
    const c10::DeviceIndex device = given.value_or(communicators_.first().value_or(current_device()));
    const at::Tensor one =
        at::empty({1}, at::TensorOptions(c10::Device(c10::kPrivateUse1, device)).dtype(c10::kFloat)).zero_();
    return run({.title = "dicl:barrier",
                .call = call,
                .inputs = {one},
                .outputs = {one},
                .results = {one},
                .launch = [one](Launch& calls) { calls.all_reduce(calls.update(one)); },
                .stage = [this, device, call] { return host_->barrier(device, call); }},
               reduced(diopiCollectiveAllReduce, c10::kFloat, c10d::ReduceOp::SUM));
}

void DeviceCollectives::monitored_barrier(std::chrono::milliseconds timeout, bool all_ranks) {
    host_->monitored_barrier(timeout, all_ranks);
}

void DeviceCollectives::set_timeout(std::chrono::milliseconds timeout) {
    timeout_ = timeout;
    host_->set_timeout(timeout);
}

std::unique_ptr<distributed::Collectives> DeviceCollectives::split(const c10::intrusive_ptr<c10d::Store>& store,
                                                                   const std::vector<int>& ranks,
                                                                   std::chrono::milliseconds timeout) {
    const auto own = std::find(ranks.begin(), ranks.end(), rank_);
    auto host = host_->split(c10::make_intrusive<c10d::PrefixStore>("gloo/", store), ranks, timeout);
    return std::make_unique<DeviceCollectives>(std::move(host), c10::make_intrusive<c10d::PrefixStore>("dicl/", store),
                                               static_cast<int>(own - ranks.begin()), static_cast<int>(ranks.size()),
                                               timeout);
}

void DeviceCollectives::abort() {
    try {
        TORCH_CHECK_WITH(DistBackendError, false,
                         "dicl: this process group was aborted; call destroy_process_group() and make a new one");
    } catch (...) {
        watchdog_.fail(std::current_exception());
    }
    host_->abort();
}

}  // namespace dipu::collectives

// What each collective copies, and which one of the host it is.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <utility>

#include "reduction.h"
#include "staged_collectives.h"

namespace dipu::distributed {
namespace {

using c10d::OpType;

std::vector<int64_t> byte_counts(const Tensors& tensors) {
    std::vector<int64_t> counts;
    for (const at::Tensor& tensor : tensors) {
        counts.push_back(static_cast<int64_t>(tensor.nbytes()));
    }
    return counts;
}

c10::DeviceIndex index_of(const at::Tensor& tensor) { return tensor.device().index(); }

}  // namespace

WorkPtr StagedCollectives::run_reduction(Operation operation, const c10d::ReduceOp& op, Reduce start) {
    const Reduction reduction(op, operation.inputs[0].scalar_type(), size_);
    const auto values = std::make_shared<at::Tensor>();
    operation.start = [reduction, values, start = std::move(start)](c10d::Backend& host, Staging& staging) {
        *values = reduction.host_values(staging.input());
        return start(host, *values, c10d::ReduceOp(reduction.host_op()));
    };
    if (!operation.outputs.empty()) {
        operation.finish = [reduction, values](Staging& staging) {
            staging.take_output(staging.input());
            reduction.store(*values, staging.output());
        };
    }
    return run(std::move(operation));
}

WorkPtr StagedCollectives::broadcast(const Tensors& tensors, int root, Call call) {
    const bool sends = rank_ == root;
    return run({
        .call = call,
        .title = "dicl:broadcast",
        .device = index_of(tensors[0]),
        .inputs = sends ? tensors : Tensors(),
        .outputs = sends ? Tensors() : tensors,
        .results = tensors,
        .start =
            [sends, root, call](c10d::Backend& host, Staging& staging) {
                Tensors bytes{sends ? staging.input() : staging.output()};
                c10d::BroadcastOptions options;
                options.rootRank = root;
                options.timeout = call.timeout;
                return host.broadcast(bytes, options);
            },
    });
}

WorkPtr StagedCollectives::allreduce(const Tensors& tensors, const c10d::ReduceOp& op, Call call) {
    Operation operation{.call = call,
                        .title = "dicl:all_reduce",
                        .device = index_of(tensors[0]),
                        .inputs = tensors,
                        .outputs = tensors,
                        .results = tensors,
                        .start = nullptr};
    return run_reduction(std::move(operation), op,
                         [call](c10d::Backend& host, const at::Tensor& values, const c10d::ReduceOp& host_op) {
                             Tensors list{values};
                             c10d::AllreduceOptions options;
                             options.reduceOp = host_op;
                             options.timeout = call.timeout;
                             return host.allreduce(list, options);
                         });
}

WorkPtr StagedCollectives::reduce(const Tensors& tensors, const c10d::ReduceOp& op, int root, Call call) {
    Operation operation{.call = call,
                        .title = "dicl:reduce",
                        .device = index_of(tensors[0]),
                        .inputs = tensors,
                        .outputs = rank_ == root ? tensors : Tensors(),
                        .results = tensors,
                        .start = nullptr};
    return run_reduction(std::move(operation), op,
                         [root, call](c10d::Backend& host, const at::Tensor& values, const c10d::ReduceOp& host_op) {
                             Tensors list{values};
                             c10d::ReduceOptions options;
                             options.reduceOp = host_op;
                             options.rootRank = root;
                             options.timeout = call.timeout;
                             return host.reduce(list, options);
                         });
}

WorkPtr StagedCollectives::reduce_scatter(const Tensors& outputs, const RankLists& parts, const c10d::ReduceOp& op,
                                          Call call) {
    const std::vector<Tensors> inputs = parts.lists();
    const Reduction reduction(op, outputs[0].scalar_type(), size_);
    // What the other ranks have for this one. Gloo would reduce everything on all ranks, which sends twice as much.
    const auto rows = std::make_shared<at::Tensor>();
    return run({
        .call = call,
        .title = "dicl:reduce_scatter",
        .device = index_of(outputs[0]),
        .inputs = RankLists(inputs).all(),
        .outputs = outputs,
        .results = outputs,
        .start =
            [reduction, rows, inputs, rank = rank_, call](c10d::Backend& host, Staging& staging) {
                at::Tensor input = reduction.host_values(staging.input());
                const int64_t bytes = std::max<int64_t>(1, staging.input().numel());
                std::vector<int64_t> sent;  // elements as the host reduces them
                for (const Tensors& part : inputs) {
                    sent.push_back(0);
                    for (const at::Tensor& tensor : part) {
                        sent.back() += static_cast<int64_t>(tensor.nbytes()) * input.numel() / bytes;
                    }
                }
                std::vector<int64_t> received(inputs.size(), sent[rank]);
                *rows = at::empty({sent[rank] * static_cast<int64_t>(inputs.size())}, input.options());
                c10d::AllToAllOptions options;
                options.timeout = call.timeout;
                return host.alltoall_base(*rows, input, received, sent, options);
            },
        .finish = [reduction, rows, size = size_](
                      Staging& staging) { reduction.store(reduction.fold(rows->view({size, -1})), staging.output()); },
    });
}

WorkPtr StagedCollectives::allgather(const RankLists& outputs, const Tensors& inputs, Call call) {
    return run({
        .call = call,
        .title = "dicl:all_gather",
        .device = index_of(inputs[0]),
        .inputs = inputs,
        .outputs = RankLists(outputs.lists()).all(),
        .results = outputs.all(),
        .start =
            [call](c10d::Backend& host, Staging& staging) {
                at::Tensor input = staging.input();
                c10d::AllgatherOptions options;
                options.timeout = call.timeout;
                return host._allgather_base(staging.output(), input, options);
            },
    });
}

WorkPtr StagedCollectives::gather(const Tensors& outputs, const at::Tensor& input, int root, Call call) {
    return run({
        .call = call,
        .title = "dicl:gather",
        .device = index_of(input),
        .inputs = {input},
        .outputs = outputs,
        .results = outputs,
        .start =
            [root, call, size = size_, receives = rank_ == root](c10d::Backend& host, Staging& staging) {
                Tensors list{staging.input()};
                std::vector<Tensors> lists;
                if (receives) {
                    lists.push_back(staging.output().chunk(size));
                }
                c10d::GatherOptions options;
                options.rootRank = root;
                options.timeout = call.timeout;
                return host.gather(lists, list, options);
            },
    });
}

WorkPtr StagedCollectives::scatter(const at::Tensor& output, const Tensors& inputs, int root, Call call) {
    return run({
        .call = call,
        .title = "dicl:scatter",
        .device = index_of(output),
        .inputs = inputs,
        .outputs = {output},
        .results = {output},
        .start =
            [root, call, size = size_, sends = rank_ == root](c10d::Backend& host, Staging& staging) {
                Tensors list{staging.output()};
                std::vector<Tensors> lists;
                if (sends) {
                    lists.push_back(staging.input().chunk(size));
                }
                c10d::ScatterOptions options;
                options.rootRank = root;
                options.timeout = call.timeout;
                return host.scatter(list, lists, options);
            },
    });
}

WorkPtr StagedCollectives::alltoall(const RankLists& received, const RankLists& sent, Call call) {
    const Tensors outputs = RankLists(received.lists()).nth(0);
    const Tensors inputs = RankLists(sent.lists()).nth(0);
    return run({
        .call = call,
        .title = "dicl:all_to_all",
        .device = index_of(inputs[0]),
        .inputs = inputs,
        .outputs = outputs,
        .results = received.all(),
        .start =
            [call, to = byte_counts(inputs), from = byte_counts(outputs)](c10d::Backend& host, Staging& staging) {
                at::Tensor input = staging.input();
                std::vector<int64_t> output_splits = from;
                std::vector<int64_t> input_splits = to;
                c10d::AllToAllOptions options;
                options.timeout = call.timeout;
                return host.alltoall_base(staging.output(), input, output_splits, input_splits, options);
            },
    });
}

WorkPtr StagedCollectives::send(const at::Tensor& tensor, int destination, int tag, Call call) {
    return run_point_to_point({
        .call = call,
        .title = "dicl:send",
        .device = index_of(tensor),
        .inputs = {tensor},
        .outputs = {},
        .results = {tensor},
        .start =
            [destination, tag](c10d::Backend& host, Staging& staging) {
                Tensors list{staging.input()};
                return host.send(list, destination, tag);
            },
    });
}

WorkPtr StagedCollectives::recv(const at::Tensor& tensor, int source, int tag, Call call) {
    return run_point_to_point({
        .call = call,
        .title = "dicl:recv",
        .device = index_of(tensor),
        .inputs = {},
        .outputs = {tensor},
        .results = {tensor},
        .start =
            [source, tag](c10d::Backend& host, Staging& staging) {
                Tensors list{staging.output()};
                return host.recv(list, source, tag);
            },
    });
}

WorkPtr StagedCollectives::recv_any(const at::Tensor& tensor, int tag, Call call) {
    return run_point_to_point({
        .call = call,
        .title = "dicl:recv_any_source",
        .device = index_of(tensor),
        .inputs = {},
        .outputs = {tensor},
        .results = {tensor},
        .start =
            [tag](c10d::Backend& host, Staging& staging) {
                Tensors list{staging.output()};
                return host.recvAnysource(list, tag);
            },
    });
}

WorkPtr StagedCollectives::barrier(std::optional<c10::DeviceIndex> device, Call call) {
    return run({
        .call = call,
        .title = "dicl:barrier",
        .device = device.value_or(current_device()),
        .inputs = {},
        .outputs = {},
        .results = {},
        .start =
            [call](c10d::Backend& host, Staging&) {
                c10d::BarrierOptions options;
                options.timeout = call.timeout;
                return host.barrier(options);
            },
    });
}

}  // namespace dipu::distributed

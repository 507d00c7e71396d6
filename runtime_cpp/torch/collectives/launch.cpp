// Collects the calls of a launch, and makes them in one group.
#include "launch.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <optional>
#include <string_view>

#include "device/stream.h"
#include "profiler/call_span.h"

namespace dipu::collectives {

void Launch::enter(diopiCommHandle_t comm, const Wire& wire) {
    comm_ = comm;
    wire_ = wire;
}

at::Tensor Launch::read(const at::Tensor& tensor) {
    used_.push_back(tensor);
    return tensor.is_contiguous() ? tensor : tensor.contiguous();
}

at::Tensor Launch::write(const at::Tensor& tensor) {
    used_.push_back(tensor);
    if (tensor.is_contiguous()) {
        return tensor;
    }
    const at::Tensor dense = at::empty_like(tensor, tensor.options(), c10::MemoryFormat::Contiguous);
    copies_.emplace_back(tensor, dense);
    return dense;
}

at::Tensor Launch::update(const at::Tensor& tensor) {
    const at::Tensor dense = write(tensor);
    if (!dense.is_same(tensor)) {
        dense.copy_(tensor);
    }
    return dense;
}

bool Launch::adjacent(const std::vector<at::Tensor>& parts) {
    const auto* next = static_cast<const char*>(parts[0].const_data_ptr());
    for (const at::Tensor& part : parts) {
        // Of one storage, too: neighbours by accident may not outlive each other.
        if (!part.is_contiguous() || part.const_data_ptr() != next || part.numel() != parts[0].numel() ||
            !part.is_alias_of(parts[0])) {
            return false;
        }
        next += part.nbytes();
    }
    return true;
}

at::Tensor Launch::read_parts(const std::vector<at::Tensor>& parts) {
    used_.insert(used_.end(), parts.begin(), parts.end());
    if (adjacent(parts)) {
        return parts[0];
    }
    std::vector<at::Tensor> flat;
    for (const at::Tensor& part : parts) {
        flat.push_back(part.reshape({-1}));
    }
    return at::cat(flat);
}

at::Tensor Launch::write_parts(const std::vector<at::Tensor>& parts) {
    used_.insert(used_.end(), parts.begin(), parts.end());
    if (adjacent(parts)) {
        return parts[0];
    }
    const at::Tensor all = at::empty({static_cast<int64_t>(parts.size()), parts[0].numel()}, parts[0].options());
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
        copies_.emplace_back(parts[rank], all[static_cast<int64_t>(rank)].view(parts[rank].sizes()));
    }
    return all;
}

void Launch::add(const char* title, Function function, std::vector<at::Tensor> tensors) {
    steps_.push_back({title, comm_, std::move(function)});
    used_.insert(used_.end(), std::make_move_iterator(tensors.begin()), std::make_move_iterator(tensors.end()));
}

diopiReduceOp_t Launch::operation() {
    diopiReduceOp_t op = wire_.op;
    if (wire_.factor) {
        check(table()->create_premul_sum(&op, *wire_.factor, wire_.dtype, comm_), comm_,
              "make a sum of multiplied values");
        made_.emplace_back(comm_, op);
    }
    return op;
}

void Launch::all_reduce(const at::Tensor& values) {
    add("dicl:all_reduce",
        [memory = values.data_ptr(), count = count(values), dtype = wire_.dtype, op = operation(), comm = comm_](
            diopiStreamHandle_t stream) { return table()->all_reduce(memory, memory, count, dtype, op, comm, stream); },
        {values});
}

void Launch::broadcast(const at::Tensor& values, int root) {
    add("dicl:broadcast",
        [memory = values.data_ptr(), count = count(values), dtype = wire_.dtype, root,
         comm = comm_](diopiStreamHandle_t stream) {
            return table()->broadcast(memory, memory, count, dtype, root, comm, stream);
        },
        {values});
}

void Launch::reduce(const at::Tensor& input, const at::Tensor& output, int root) {
    add("dicl:reduce",
        [from = input.const_data_ptr(), to = output.data_ptr(), count = count(input), dtype = wire_.dtype,
         op = operation(), root, comm = comm_](diopiStreamHandle_t stream) {
            return table()->reduce(from, to, count, dtype, op, root, comm, stream);
        },
        {input, output});
}

void Launch::all_gather(const at::Tensor& input, const at::Tensor& outputs) {
    add("dicl:all_gather",
        [from = input.const_data_ptr(), to = outputs.data_ptr(), count = count(input), dtype = wire_.dtype,
         comm = comm_](diopiStreamHandle_t stream) {
            return table()->all_gather(from, to, count, dtype, comm, stream);
        },
        {input, outputs});
}

void Launch::reduce_scatter(const at::Tensor& inputs, const at::Tensor& output) {
    add("dicl:reduce_scatter",
        [from = inputs.const_data_ptr(), to = output.data_ptr(), count = count(output), dtype = wire_.dtype,
         op = operation(), comm = comm_](diopiStreamHandle_t stream) {
            return table()->reduce_scatter(from, to, count, dtype, op, comm, stream);
        },
        {inputs, output});
}

void Launch::all_to_all(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& outputs, int ranks) {
    uint64_t all = 0;
    for (const at::Tensor& input : inputs) {
        all += count(input);
    }
    const at::Tensor sent = read_parts(inputs);
    const at::Tensor received = write_parts(outputs);
    add("dicl:all_to_all",
        [from = sent.const_data_ptr(), to = received.data_ptr(), count = all / ranks, dtype = wire_.dtype,
         comm = comm_](diopiStreamHandle_t stream) {
            return table()->all_to_all(from, to, count, dtype, comm, stream);
        },
        {sent, received});
}

void Launch::send(const at::Tensor& values, int peer) {
    add("dicl:send",
        [memory = values.const_data_ptr(), count = count(values), dtype = wire_.dtype, peer,
         comm = comm_](diopiStreamHandle_t stream) { return table()->send(memory, count, dtype, peer, comm, stream); },
        {values});
}

void Launch::recv(const at::Tensor& values, int peer) {
    add("dicl:recv",
        [memory = values.data_ptr(), count = count(values), dtype = wire_.dtype, peer,
         comm = comm_](diopiStreamHandle_t stream) { return table()->recv(memory, count, dtype, peer, comm, stream); },
        {values});
}

void Launch::copy(const at::Tensor& to, const at::Tensor& from) { copies_.emplace_back(to, from); }

void Launch::submit() {
    const diopiStreamHandle_t stream = native_stream(stream_);
    const auto launch = [&](const Step& step) {
        const int32_t status = step.function(stream);
        TORCH_CHECK_WITH(DistBackendError, status == 0, step.title, " could not be launched (status ", status,
                         "): ", last_error(step.comm));
    };
    std::optional<CallSpan> span;
    if (!steps_.empty()) {
        // Profiles count calls of "dicl:all_reduce"; the work on the device is "all_reduce".
        constexpr std::string_view prefix = "dicl:";
        span.emplace(steps_[0].title + prefix.size(), stream_.device_index());
    }
    if (steps_.size() == 1) {
        launch(steps_[0]);
    } else if (!steps_.empty()) {
        check(table()->group_start(), nullptr, "group collectives");
        try {
            for (const Step& step : steps_) {
                launch(step);
            }
        } catch (...) {
            table()->group_end();
            throw;
        }
        check(table()->group_end(), nullptr, "launch collectives");
    }
    span.reset();
    for (const auto& [to, from] : copies_) {
        to.copy_(from);
        used_.push_back(from);
    }
    for (const auto& [comm, op] : made_) {
        check(table()->destroy_reduce_op(op, comm), comm, "let a reduction go");
    }
}

}  // namespace dipu::collectives

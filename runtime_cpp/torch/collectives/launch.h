// One launch on a communicator's stream: what its calls read and write, dense, and the calls themselves.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <utility>
#include <vector>

#include "wire.h"

namespace dipu::collectives {

class Launch {
public:
    explicit Launch(c10::Stream stream) : stream_(stream) {}

    // The operation that the next calls are of.
    void enter(diopiCommHandle_t comm, const Wire& wire);

    // To be called on the stream. The elements of a tensor as one piece of memory: its own, or a copy.
    at::Tensor read(const at::Tensor& tensor);
    // The same to be written: a copy goes to the tensor afterwards.
    at::Tensor write(const at::Tensor& tensor);
    at::Tensor update(const at::Tensor& tensor);  // both
    // The tensors as the parts of one piece of memory, of which each has as many elements.
    at::Tensor read_parts(const std::vector<at::Tensor>& parts);
    at::Tensor write_parts(const std::vector<at::Tensor>& parts);
    // Whether tensors of one size lie one behind another.
    static bool adjacent(const std::vector<at::Tensor>& parts);

    // Inside of the group. The arguments are as the functions of the table have them.
    void all_reduce(const at::Tensor& values);
    void broadcast(const at::Tensor& values, int root);
    void reduce(const at::Tensor& input, const at::Tensor& output, int root);
    void all_gather(const at::Tensor& input, const at::Tensor& outputs);
    void reduce_scatter(const at::Tensor& inputs, const at::Tensor& output);
    void all_to_all(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& outputs, int ranks);  // parts
    void send(const at::Tensor& values, int peer);
    void recv(const at::Tensor& values, int peer);
    void copy(const at::Tensor& to, const at::Tensor& from);  // of a rank to itself

    // Everything that was asked for, as one launch; what has to be alive until it is over is in used().
    void submit();
    std::vector<at::Tensor> take_used() { return std::move(used_); }

private:
    using Function = std::function<int32_t(diopiStreamHandle_t stream)>;

    // Keeps the tensors.
    void add(const char* title, Function function, std::vector<at::Tensor> tensors);
    uint64_t count(const at::Tensor& values) const {
        return wire_.bytes ? values.nbytes() : static_cast<uint64_t>(values.numel() * wire_.per_element);
    }
    diopiReduceOp_t operation();

    c10::Stream stream_;
    diopiCommHandle_t comm_ = nullptr;
    Wire wire_{};
    struct Step {
        const char* title;
        diopiCommHandle_t comm;
        Function function;
    };
    std::vector<Step> steps_;
    std::vector<std::pair<at::Tensor, at::Tensor>> copies_;  // to, from; afterwards
    std::vector<std::pair<diopiCommHandle_t, diopiReduceOp_t>> made_;
    std::vector<at::Tensor> used_;
};

}  // namespace dipu::collectives

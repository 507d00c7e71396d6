// An operator's arguments on the CPU, sharing memory as they do on the device: torch's own kernel then computes or refuses the same call.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <map>
#include <vector>

namespace dipu {

class HostCopies {
public:
    // Replaces the device's tensors among the operator's arguments on `stack`.
    HostCopies(const c10::OperatorHandle& op, torch::jit::Stack& stack);

    // Runs the operator on the copies. Throws what torch throws.
    void run(const c10::OperatorHandle& op, torch::jit::Stack& stack) const;

    // Copies what the operator wrote to its arguments, and its results to the device.
    void give_back(const c10::OperatorHandle& op, torch::jit::Stack& stack) const;

private:
    struct Copy {
        at::Tensor given;
        at::Tensor host;
        bool written;
    };

    at::Tensor copied(const at::Tensor& tensor, bool written);
    c10::IValue copied(const c10::IValue& value, bool written);
    at::Tensor returned(const at::Tensor& result) const;

    std::vector<Copy> copies_;
    std::map<const c10::StorageImpl*, at::Tensor> bytes_;  // of each storage, on the CPU
    c10::Device device_{c10::kPrivateUse1, -1};
};

}  // namespace dipu

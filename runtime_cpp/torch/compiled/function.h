// The two programs of a training graph as one function of autograd, without Python between them and the engine.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "program.h"

namespace dipu::compiled {

// A gradient as the backward program takes it.
struct Tangent {
    int64_t output;  // whose gradient it is
    std::vector<int64_t> sizes;
    std::vector<int64_t> strides;
};

// What the forward program gives is what the caller gets, then what is saved; the backward program takes what is saved,
// then the tangents, and gives a gradient or nothing for each argument.
struct FunctionSpecification {
    int64_t outputs;
    int64_t checked;                 // saved tensors whose later writes are errors; the rest is saved as it is
    std::vector<Tangent> tangents;
    std::vector<int64_t> gradients;  // which arguments have one
    std::vector<int64_t> written;    // arguments that the forward program writes to, as autograd is to know
    bool deterministic;                   // whether torch.use_deterministic_algorithms() was on when it was compiled
};

class DIPU_API TrainingFunction : public torch::CustomClassHolder {
public:
    TrainingFunction(std::shared_ptr<Program> forward, std::shared_ptr<Program> backward,
                     FunctionSpecification specification);

    // Runs the forward program; its outputs remember the arguments that want a gradient.
    std::vector<Value> call(std::vector<Value> arguments);

    Program& forward() const { return *forward_; }
    Program& backward() const { return *backward_; }
    const FunctionSpecification& specification() const { return specification_; }

private:
    std::shared_ptr<Program> forward_, backward_;
    FunctionSpecification specification_;
};

}  // namespace dipu::compiled

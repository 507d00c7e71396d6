// What wrappers of plain operators (those without a meta class in torch) do with outputs.
#pragma once

#include <initializer_list>
#include <vector>

#include "arguments.h"
#include "fast_path.h"

namespace dipu {

// Resizes an out= tensor of the result's dtype and device. Of another dtype torch itself is asked, and it gives false; of another device
// it throws c10::Error.
DIPU_API bool fit(const at::Tensor& out, c10::IntArrayRef sizes, c10::ScalarType dtype);
DIPU_API bool fit(const at::Tensor& out, c10::IntArrayRef sizes, c10::ScalarType dtype, c10::Device device);

// An output in the shape that the operands meet in. Its dimensions lie in the order that torch's iterator gives them.
DIPU_API at::Tensor new_broadcast(c10::IntArrayRef sizes, c10::ScalarType dtype, c10::DeviceIndex device,
                                  std::initializer_list<const at::Tensor*> operands);

// An output whose channels are innermost where those of an operand are; behind them are `spatial` dimensions, before them may be
// a batch.
DIPU_API at::Tensor new_ordered(c10::IntArrayRef sizes, c10::ScalarType dtype, c10::DeviceIndex device, int64_t spatial,
                                std::initializer_list<const at::Tensor*> operands);

// An output for each tensor of a list, of its dtype and in its shape, or all in the shape `sizes`.
DIPU_API std::vector<at::Tensor> new_each(at::TensorList inputs);
DIPU_API std::vector<at::Tensor> new_each(at::TensorList inputs, c10::IntArrayRef sizes);

// An output of an in-place form whose function may not write what it reads: computed aside, copied by flush.
class Aside {
public:
    explicit Aside(const at::Tensor& tensor) : Aside(tensor, tensor.scalar_type()) {}
    Aside(const at::Tensor& tensor, c10::ScalarType dtype) : tensor_(&tensor), aside_(new_preserved(tensor, dtype)) {}
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;

    operator diopiTensorHandle_t() const { return out_handle(aside_); }

    bool flush() const {
        tensor_->copy_(aside_);
        return true;
    }

private:
    const at::Tensor* tensor_;
    at::Tensor aside_;
};

// Takes over what the callee allocated: `out` becomes it. Returns true, to close an `&&` chain.
inline bool take(at::Tensor& out, const CalleeOut& allocated) {
    out = allocated.tensor();
    return true;
}

// Gives a caller's out= tensor the result that a callee allocated.
DIPU_API void assign(const at::Tensor& out, const at::Tensor& result);

}  // namespace dipu

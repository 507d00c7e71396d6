// Outputs of plain operators; the messages are torch's own.
#include "plain.h"

#include <ATen/native/Resize.h>
#include <ATen/native/TypeProperties.h>
#include <c10/util/Exception.h>

#include "dtypes.h"

namespace dipu {

void fit(const at::Tensor& out, c10::IntArrayRef sizes, c10::ScalarType dtype) {
    TORCH_CHECK(c10::canCast(dtype, out.scalar_type()), "result type ", dtype,
                " can't be cast to the desired output type ", out.scalar_type());
    at::native::resize_output(out, sizes);
}

std::vector<at::Tensor> new_each(at::TensorList inputs) {
    std::vector<at::Tensor> outs;
    outs.reserve(inputs.size());
    for (const at::Tensor& input : inputs) {
        outs.push_back(new_preserved(input, input.scalar_type()));
    }
    return outs;
}

std::vector<at::Tensor> new_each(at::TensorList inputs, c10::IntArrayRef sizes) {
    std::vector<at::Tensor> outs;
    outs.reserve(inputs.size());
    for (const at::Tensor& input : inputs) {
        outs.push_back(new_contiguous(sizes, input.scalar_type(), input.device().index()));
    }
    return outs;
}

void assign(const at::Tensor& out, const at::Tensor& result) {
    fit(out, result.sizes(), result.scalar_type());
    out.copy_(result);
}

c10::ScalarType promoted_tensors(std::initializer_list<const at::Tensor*> tensors) {
    at::native::ResultTypeState state;
    for (const at::Tensor* tensor : tensors) {
        if (tensor != nullptr && tensor->defined()) {
            state = at::native::update_result_type_state(*tensor, state);
        }
    }
    return at::native::result_type(state);
}

}  // namespace dipu

// Outputs of plain operators; the messages are torch's own.
#include "plain.h"

#include <ATen/TensorIterator.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TypeProperties.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "dtypes.h"
#include "structured.h"
#include "unusual.h"

namespace dipu {

void check_cast(c10::ScalarType result, const at::Tensor& out) {
    TORCH_CHECK(c10::canCast(result, out.scalar_type()), "result type ", result,
                " can't be cast to the desired output type ", out.scalar_type());
}

bool fit(const at::Tensor& out, c10::IntArrayRef sizes, c10::ScalarType dtype) {
    if (out.scalar_type() != dtype) {
        return ask_torch("an output of another dtype");
    }
    at::native::resize_output(out, sizes);
    return true;
}

bool fit(const at::Tensor& out, c10::IntArrayRef sizes, c10::ScalarType dtype, c10::Device device) {
    check_device(out, device);
    return fit(out, sizes, dtype);
}

at::Tensor new_broadcast(c10::IntArrayRef sizes, c10::ScalarType dtype, c10::DeviceIndex device,
                         std::initializer_list<const at::Tensor*> operands) {
    if (std::ranges::all_of(operands, [](const at::Tensor* operand) { return operand->is_contiguous(); })) {
        return new_contiguous(sizes, dtype, device);
    }
    at::TensorIteratorConfig config;
    config.set_check_mem_overlap(false).check_all_same_dtype(false).check_all_same_device(false);
    config.declare_static_dtype_and_device(dtype, c10::Device(c10::kPrivateUse1, device))
        .add_owned_output(at::TensorBase());
    for (const at::Tensor* const operand : operands) {
        config.add_const_input(*operand);
    }
    return config.build().output();
}

at::Tensor new_ordered(c10::IntArrayRef sizes, c10::ScalarType dtype, c10::DeviceIndex device, int64_t spatial,
                       std::initializer_list<const at::Tensor*> operands) {
    if (std::ssize(sizes) <= spatial) {  // a bias's gradient has no channels
        return new_contiguous(sizes, dtype, device);
    }
    const auto is_batch = [&](c10::IntArrayRef of) { return std::ssize(of) != spatial + 1; };
    for (const at::Tensor* const operand : operands) {
        at::DimVector given(operand->sizes());
        at::DimVector lies(operand->strides());
        if (!is_batch(given)) {
            lies.insert(lies.begin(), operand->numel());
            given.insert(given.begin(), 1);
        }
        const bool innermost = spatial == 2 ? c10::is_channels_last_strides_2d(given, lies)
                                            : c10::is_channels_last_strides_3d(given, lies);
        if (!innermost) {
            continue;
        }
        at::DimVector all(sizes);
        if (!is_batch(sizes)) {
            all.insert(all.begin(), 1);
        }
        const std::vector<int64_t> strides(spatial == 2 ? c10::get_channels_last_strides_2d(all)
                                                        : c10::get_channels_last_strides_3d(all));
        const c10::TensorOptions options = c10::TensorOptions(c10::Device(c10::kPrivateUse1, device)).dtype(dtype);
        return new_output(sizes, c10::IntArrayRef(strides).slice(is_batch(sizes) ? 0 : 1), options);
    }
    return new_contiguous(sizes, dtype, device);
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
    TORCH_CHECK(out.device() == result.device(), "Expected out tensor to have device ", result.device(), ", but got ",
                out.device(), " instead");
    check_cast(result.scalar_type(), out);
    at::native::resize_output(out, result.sizes());
    out.copy_(result);
}

c10::ScalarType promoted_operands(std::initializer_list<Operand> operands) {
    at::native::ResultTypeState state;
    for (const Operand& operand : operands) {
        if (operand.number != nullptr) {
            state = at::native::update_result_type_state(*operand.number, state);
        } else if (operand.tensor != nullptr) {
            state = at::native::update_result_type_state(*operand.tensor, state);
        }
    }
    return at::native::result_type(state);
}

bool keeps_dtypes(at::TensorList tensors, const Operand& other) {
    return std::all_of(tensors.begin(), tensors.end(), [&](const at::Tensor& tensor) {
        return promoted_operands({Operand(tensor), other}) == tensor.scalar_type();
    });
}

}  // namespace dipu

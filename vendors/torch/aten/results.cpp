// Results of ATen where the contract wants them.
#include "aten/call.h"

namespace diopi::aten {
namespace {

std::string shown(at::IntArrayRef sizes) {
    std::string text = "[";
    for (size_t i = 0; i < sizes.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(sizes[i]);
    return text + "]";
}

}  // namespace

Into into(diopiTensorHandle_t handle) { return Into(tensor(handle)); }

void write(diopiTensorHandle_t out, const at::Tensor& value) {
    if (out == nullptr) return;
    at::Tensor target = tensor(out);
    const bool fits =
        target.squeeze().sizes() == value.squeeze().sizes();  // callers leave out dimensions of one element
    if (!fits) {
        throw Failure(diopiErrorOccurred,
                      "an output has the sizes " + shown(target.sizes()) + ", the result has " + shown(value.sizes()));
    }
    target.copy_(value.reshape(target.sizes()));
}

void write(const diopiTensorHandle_t* outs, int64_t count, at::TensorList values) {
    if (static_cast<int64_t>(values.size()) != count) {
        throw Failure(diopiErrorOccurred, "there are " + std::to_string(count) + " outputs for " +
                                              std::to_string(values.size()) + " results");
    }
    for (int64_t i = 0; i < count; ++i) write(outs[i], values[static_cast<size_t>(i)]);
}

void allocate(diopiContextHandle_t ctx, diopiTensorHandle_t* out, const at::Tensor& value) {
    if (out == nullptr) return;
    const diopiSize_t size{value.sizes().data(), value.dim()};
    const diopiSize_t stride{value.strides().data(), value.dim()};
    const bool dense = value.is_non_overlapping_and_dense();
    check(diopiRequireTensor(ctx, out, &size, dense ? &stride : nullptr, dtype_of(value.scalar_type()), diopi_device),
          "the context gives no tensor for a result");
    write(*out, value);
}

}  // namespace diopi::aten

// Shapes and element sizes of standalone's tensors.
#include "tensor.h"

#include <diopi/diopirt_ext.h>

#include <string>
#include <utility>

#include "../contract/memory_order.h"
#include "error.h"

void* diopiTensor::data() const {
    return static_cast<char*>(storage->data()) + storage_offset * diopi::standalone::element_bytes(dtype);
}

namespace diopi::standalone {

int64_t element_bytes(diopiDtype_t dtype) {
    const int64_t bytes = diopiDtypeBytes(dtype);
    if (bytes != 0) return bytes;
    throw Error(std::to_string(static_cast<int>(dtype)) + " is not a dtype of diopirt.h", diopiDtypeNotSupported);
}

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& sizes) {
    std::vector<int64_t> strides(sizes.size());
    int64_t stride = 1;
    for (size_t dim = sizes.size(); dim-- > 0;) {
        strides[dim] = stride;
        stride *= sizes[dim] > 0 ? sizes[dim] : 1;
    }
    return strides;
}

int64_t Layout::numel() const {
    int64_t numel = 1;
    for (const int64_t size : sizes) numel *= size;
    return numel;
}

int64_t Layout::storage_elements() const {
    require(sizes.size() == strides.size(), "a tensor needs as many strides as sizes");
    require(storage_offset >= 0, "a tensor starts before its storage: the offset is negative");
    int64_t last = storage_offset;
    for (size_t dim = 0; dim < sizes.size(); ++dim) {
        require(sizes[dim] >= 0, "a tensor has a negative size");
        require(strides[dim] >= 0, "a tensor has a negative stride");
        last += (sizes[dim] - 1) * strides[dim];
    }
    return numel() == 0 ? 0 : last + 1;
}

std::unique_ptr<diopiTensor> make_tensor(std::shared_ptr<Storage> storage, Layout layout, diopiDtype_t dtype) {
    auto tensor = std::make_unique<diopiTensor>();
    tensor->storage = std::move(storage);
    tensor->numel = layout.numel();
    tensor->storage_offset = layout.storage_offset;
    tensor->sizes = std::move(layout.sizes);
    tensor->strides = std::move(layout.strides);
    tensor->dtype = dtype;
    tensor->orders =
        contract::orders_of(tensor->sizes.data(), tensor->strides.data(), static_cast<int64_t>(tensor->sizes.size()));
    return tensor;
}

}  // namespace diopi::standalone

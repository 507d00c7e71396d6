// The functions of diopirt.h that ask a tensor.
#include <diopi/diopirt_ext.h>
#include <diopi/diopirt.h>

#include "error.h"
#include "tensor.h"
#include "vendor.h"

using diopi::standalone::at_boundary;
using diopi::standalone::Error;
using diopi::standalone::require;

namespace {

diopiError_t refuse_question(diopiConstTensorHandle_t th) noexcept {
    return at_boundary([th] {
        require(th != nullptr, "a tensor is asked through a null handle");
        require(false, "a tensor is asked with a null result pointer");
    });
}

// Gives `read(tensor)` after the check that every accessor needs; reading throws nothing. Operators ask for little else,
// so the way to a failure stands apart.
template <class Read>
diopiError_t ask(diopiConstTensorHandle_t th, const void* result, Read&& read) noexcept {
    if (th == nullptr || result == nullptr) return refuse_question(th);
    read(*th);
    return diopiSuccess;
}

diopiError_t refuse_sparse(diopiConstTensorHandle_t th, const void* result) noexcept {
    if (th == nullptr || result == nullptr) return refuse_question(th);
    return at_boundary([] { throw Error("libdiopirt.so has no sparse tensors", diopiNoImplement); });
}

}  // namespace

const char* diopiGetVersion(void) { return "DIOPI Version: 1.0.0"; }

diopiError_t diopiGetTensorData(diopiTensorHandle_t th, void** data) {
    return ask(th, data, [&](const diopiTensor& tensor) { *data = tensor.data(); });
}

diopiError_t diopiGetTensorDataConst(diopiConstTensorHandle_t th, const void** data) {
    return ask(th, data, [&](const diopiTensor& tensor) { *data = tensor.data(); });
}

diopiError_t diopiGetTensorShape(diopiConstTensorHandle_t th, diopiSize_t* size) {
    return ask(th, size, [&](const diopiTensor& tensor) {
        *size = {tensor.sizes.data(), static_cast<int64_t>(tensor.sizes.size())};
    });
}

diopiError_t diopiGetTensorStride(diopiConstTensorHandle_t th, diopiSize_t* stride) {
    return ask(th, stride, [&](const diopiTensor& tensor) {
        *stride = {tensor.strides.data(), static_cast<int64_t>(tensor.strides.size())};
    });
}

diopiError_t diopiGetTensorDtype(diopiConstTensorHandle_t th, diopiDtype_t* dtype) {
    return ask(th, dtype, [&](const diopiTensor& tensor) { *dtype = tensor.dtype; });
}

diopiError_t diopiGetTensorDevice(diopiConstTensorHandle_t th, diopiDevice_t* device) {
    return ask(th, device, [&](const diopiTensor& tensor) { *device = tensor.storage->device(); });
}

diopiError_t diopiDescribeTensor(diopiConstTensorHandle_t th, diopiTensorDescription_t* description) {
    return ask(th, description, [&](const diopiTensor& tensor) {
        *description = {tensor.sizes.data(), tensor.strides.data(), static_cast<int64_t>(tensor.sizes.size()),
                        tensor.dtype, tensor.orders};
    });
}

diopiError_t diopiGetTensorNumel(diopiConstTensorHandle_t th, int64_t* numel) {
    return ask(th, numel, [&](const diopiTensor& tensor) { *numel = tensor.numel; });
}

diopiError_t diopiGetTensorElemSize(diopiConstTensorHandle_t th, int64_t* itemsize) {
    return ask(th, itemsize, [&](const diopiTensor& tensor) { *itemsize = diopiDtypeBytes(tensor.dtype); });
}

diopiError_t diopiGetTensorStoragePtr(diopiConstTensorHandle_t th, void** storage) {
    return ask(th, storage, [&](const diopiTensor& tensor) { *storage = tensor.storage->data(); });
}

diopiError_t diopiGetTensorStorageOffset(diopiConstTensorHandle_t th, int64_t* offset) {
    return ask(th, offset, [&](const diopiTensor& tensor) { *offset = tensor.storage_offset; });
}

diopiError_t diopiGetTensorStorageNbytes(diopiConstTensorHandle_t th, size_t* bytes) {
    return ask(th, bytes, [&](const diopiTensor& tensor) { *bytes = tensor.storage->bytes(); });
}

diopiError_t diopiGetTensorDeviceIndex(diopiConstTensorHandle_t th, diopiDeviceIndex_t* device) {
    return ask(th, device, [&](const diopiTensor& tensor) {
        *device = static_cast<diopiDeviceIndex_t>(tensor.storage->device_index());
    });
}

diopiError_t diopiIsTensorSparse(diopiConstTensorHandle_t th, bool* is_sparse) {
    return ask(th, is_sparse, [&](const diopiTensor&) { *is_sparse = false; });
}

diopiError_t diopiGetTensorCrowIndices(diopiConstTensorHandle_t th, diopiConstTensorHandle_t* crow_indices) {
    return refuse_sparse(th, crow_indices);
}

diopiError_t diopiGetTensorColIndices(diopiConstTensorHandle_t th, diopiConstTensorHandle_t* col_indices) {
    return refuse_sparse(th, col_indices);
}

diopiError_t diopiGetTensorValues(diopiConstTensorHandle_t th, diopiConstTensorHandle_t* values) {
    return refuse_sparse(th, values);
}

diopiError_t diopiGetCurrentDeviceIndex(diopiDeviceIndex_t* device) {
    return at_boundary([&] {
        require(device != nullptr, "the current device is asked with a null result pointer");
        *device = static_cast<diopiDeviceIndex_t>(diopi::standalone::vendor().current_device());
    });
}

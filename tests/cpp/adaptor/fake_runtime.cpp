// The runtime functions over host memory.
#include "fake_runtime.h"

namespace fake {

Faults faults;
Record record;

namespace {

template <typename T>
double read(const char* from) {
    T value;
    std::memcpy(&value, from, sizeof(T));
    return static_cast<double>(value);
}

template <typename T>
void write(char* to, double number) {
    const T value = static_cast<T>(number);
    std::memcpy(to, &value, sizeof(T));
}

}  // namespace

double load(const diopiTensor& tensor, int64_t index) {
    const char* from = place(tensor, index);
    switch (tensor.dtype) {
        case diopi_dtype_int8: return read<int8_t>(from);
        case diopi_dtype_bool: return read<uint8_t>(from);
        case diopi_dtype_int32: return read<int32_t>(from);
        case diopi_dtype_int64: return read<int64_t>(from);
        case diopi_dtype_float32: return read<float>(from);
        default: return read<double>(from);
    }
}

void store(const diopiTensor& tensor, int64_t index, double value) {
    char* to = place(tensor, index);
    switch (tensor.dtype) {
        case diopi_dtype_int8: return write<int8_t>(to, value);
        case diopi_dtype_bool: return write<uint8_t>(to, value != 0);
        case diopi_dtype_int32: return write<int32_t>(to, value);
        case diopi_dtype_int64: return write<int64_t>(to, value);
        case diopi_dtype_float32: return write<float>(to, value);
        default: return write<double>(to, value);
    }
}

diopiTensor tensor(diopiDtype_t dtype, const Sizes& sizes, Sizes strides, int64_t offset) {
    diopiTensor made;
    made.sizes = sizes;
    made.strides = strides.empty() ? contiguous(sizes) : strides;
    made.dtype = dtype;
    made.offset = offset;
    int64_t last = offset;
    for (size_t d = 0; d < sizes.size(); ++d) last += sizes[d] == 0 ? 0 : (sizes[d] - 1) * made.strides[d];
    made.storage = std::make_shared<std::vector<char>>((last + 1) * element_size(dtype));
    for (int64_t i = 0; i < count(made); ++i) store(made, i, static_cast<double>(i + 1));
    return made;
}

std::vector<double> values(const diopiTensor& tensor) {
    std::vector<double> found;
    for (int64_t i = 0; i < count(tensor); ++i) found.push_back(load(tensor, i));
    return found;
}

}  // namespace fake

extern "C" {

diopiError_t diopiGetTensorDtype(diopiConstTensorHandle_t th, diopiDtype_t* dtype) {
    if (fake::due(fake::faults.dtype)) return diopiErrorOccurred;
    *dtype = th->dtype;
    return diopiSuccess;
}

diopiError_t diopiGetTensorShape(diopiConstTensorHandle_t th, diopiSize_t* size) {
    *size = {th->sizes.data(), static_cast<int64_t>(th->sizes.size())};
    return diopiSuccess;
}

diopiError_t diopiGetTensorStride(diopiConstTensorHandle_t th, diopiSize_t* stride) {
    *stride = {th->strides.data(), static_cast<int64_t>(th->strides.size())};
    return diopiSuccess;
}

diopiError_t diopiDescribeTensor(diopiConstTensorHandle_t th, diopiTensorDescription_t* description) {
    if (fake::due(fake::faults.dtype)) return diopiErrorOccurred;
    *description = {th->sizes.data(), th->strides.data(), static_cast<int64_t>(th->sizes.size()), th->dtype, 0};
    return diopiSuccess;
}

diopiError_t diopiGetTensorDevice(diopiConstTensorHandle_t th, diopiDevice_t* device) {
    *device = th->device;
    return diopiSuccess;
}

diopiError_t diopiGetTensorDataConst(diopiConstTensorHandle_t th, const void** data) {
    *data = th->storage->data() + th->offset * fake::element_size(th->dtype);
    return diopiSuccess;
}

diopiError_t diopiRequireTensor(diopiContextHandle_t ctx, diopiTensorHandle_t* tensor, const diopiSize_t* size,
                                const diopiSize_t* stride, const diopiDtype_t dtype, const diopiDevice_t device) {
    if (fake::due(fake::faults.require)) return diopiErrorOccurred;
    const fake::Sizes sizes(size->data, size->data + size->len);
    const fake::Sizes strides =
        stride == nullptr ? fake::Sizes{} : fake::Sizes(stride->data, stride->data + stride->len);
    auto made = std::make_unique<diopiTensor>(fake::tensor(dtype, sizes, strides));
    // Whoever forgets to fill a temporary reads this.
    std::memset(made->storage->data(), 0x7b, made->storage->size());
    made->device = device;
    *tensor = made.get();
    ctx->temporaries.push_back(std::move(made));
    return diopiSuccess;
}

diopiError_t diopiReturnTensor(diopiContextHandle_t ctx, diopiTensorHandle_t tensor) {
    for (const auto& each : ctx->temporaries) {
        if (each.get() == tensor) ctx->returned.push_back(tensor);
    }
    return diopiSuccess;
}

diopiError_t diopiGetStream(diopiContextHandle_t, diopiStreamHandle_t* stream) {
    *stream = nullptr;
    return diopiSuccess;
}

int32_t device_memcpy_d2h_async(diopiStreamHandle_t, void* dst, const void* src, uint64_t bytes) {
    std::memcpy(dst, src, bytes);
    return 0;
}

int32_t device_synchronize_stream(diopiStreamHandle_t) { return 0; }

}  // extern "C"

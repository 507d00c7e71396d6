// diopirt.h over the memory of the calling process, so that the portable kernels can be tested without a chip.
#include <diopi/diopirt.h>

#include <cstring>
#include <memory>
#include <new>
#include <vector>

struct diopiTensor {
    void* data = nullptr;
    diopiDtype_t dtype = diopi_dtype_float32;
    std::vector<int64_t> sizes;
    std::vector<int64_t> strides;
    std::vector<char> owned;
    const diopiTensor* compressed[3] = {};  // the starts of the rows, columns and values of a sparse matrix
};

struct diopiContext {
    std::vector<std::unique_ptr<diopiTensor>> temporaries;
};

struct diopiGenerator {
    uint64_t seed;
    uint64_t offset;
};

namespace {

int64_t element_bytes(diopiDtype_t dtype) {
    switch (dtype) {
        case diopi_dtype_int8:
        case diopi_dtype_uint8:
        case diopi_dtype_bool: return 1;
        case diopi_dtype_int16:
        case diopi_dtype_uint16:
        case diopi_dtype_float16:
        case diopi_dtype_bfloat16: return 2;
        case diopi_dtype_int32:
        case diopi_dtype_uint32:
        case diopi_dtype_float32: return 4;
        case diopi_dtype_complex128: return 16;
        default: return 8;
    }
}

}  // namespace

extern "C" {

diopiContext* test_context_create() { return new diopiContext; }
void test_context_destroy(diopiContext* ctx) { delete ctx; }

diopiTensor* test_tensor_create(void* data, int dtype, int64_t ndim, const int64_t* sizes, const int64_t* strides) {
    auto* tensor = new diopiTensor;
    tensor->data = data;
    tensor->dtype = static_cast<diopiDtype_t>(dtype);
    tensor->sizes.assign(sizes, sizes + ndim);
    tensor->strides.assign(strides, strides + ndim);
    return tensor;
}
void test_tensor_compress(diopiTensor* tensor, const diopiTensor* starts, const diopiTensor* columns,
                          const diopiTensor* values) {
    tensor->compressed[0] = starts;
    tensor->compressed[1] = columns;
    tensor->compressed[2] = values;
}
void test_tensor_destroy(diopiTensor* tensor) { delete tensor; }

diopiGenerator* test_generator_create(uint64_t seed) { return new diopiGenerator{seed, 0}; }
void test_generator_destroy(diopiGenerator* generator) { delete generator; }

diopiError_t diopiGetTensorData(diopiTensorHandle_t th, void** data) { return *data = th->data, diopiSuccess; }
diopiError_t diopiGetTensorDataConst(diopiConstTensorHandle_t th, const void** data) {
    return *data = th->data, diopiSuccess;
}
diopiError_t diopiGetTensorShape(diopiConstTensorHandle_t th, diopiSize_t* size) {
    *size = diopiSize_t{th->sizes.data(), static_cast<int64_t>(th->sizes.size())};
    return diopiSuccess;
}
diopiError_t diopiGetTensorStride(diopiConstTensorHandle_t th, diopiSize_t* stride) {
    *stride = diopiSize_t{th->strides.data(), static_cast<int64_t>(th->strides.size())};
    return diopiSuccess;
}
diopiError_t diopiGetTensorDtype(diopiConstTensorHandle_t th, diopiDtype_t* dtype) {
    return *dtype = th->dtype, diopiSuccess;
}
diopiError_t diopiIsTensorSparse(diopiConstTensorHandle_t th, bool* is_sparse) {
    return *is_sparse = th->compressed[0] != nullptr, diopiSuccess;
}
diopiError_t diopiGetTensorCrowIndices(diopiConstTensorHandle_t th, diopiConstTensorHandle_t* starts) {
    return *starts = th->compressed[0], diopiSuccess;
}
diopiError_t diopiGetTensorColIndices(diopiConstTensorHandle_t th, diopiConstTensorHandle_t* columns) {
    return *columns = th->compressed[1], diopiSuccess;
}
diopiError_t diopiGetTensorValues(diopiConstTensorHandle_t th, diopiConstTensorHandle_t* values) {
    return *values = th->compressed[2], diopiSuccess;
}
diopiError_t diopiGetStream(diopiContextHandle_t, diopiStreamHandle_t* stream) {
    return *stream = nullptr, diopiSuccess;
}

diopiError_t diopiRequireTensor(diopiContextHandle_t ctx, diopiTensorHandle_t* tensor, const diopiSize_t* size,
                                const diopiSize_t* stride, const diopiDtype_t dtype, const diopiDevice_t) {
    auto result = std::make_unique<diopiTensor>();
    result->dtype = dtype;
    result->sizes.assign(size->data, size->data + size->len);
    result->strides.resize(static_cast<size_t>(size->len));
    int64_t next = 1;
    int64_t extent = 1;
    for (int64_t d = size->len - 1; d >= 0; --d) {
        const auto at = static_cast<size_t>(d);
        result->strides[at] = stride != nullptr ? stride->data[d] : next;
        next *= size->data[d];
        extent += size->data[d] > 0 ? (size->data[d] - 1) * result->strides[at] : 0;
    }
    result->owned.assign(static_cast<size_t>(next == 0 ? 0 : extent * element_bytes(dtype)), static_cast<char>(0x5a));
    result->data = result->owned.data();
    *tensor = result.get();
    ctx->temporaries.push_back(std::move(result));
    return diopiSuccess;
}

diopiError_t diopiRequireBuffer(diopiContextHandle_t ctx, diopiTensorHandle_t* tensor, int64_t num_bytes,
                                diopiDevice_t device) {
    const diopiSize_t size{&num_bytes, 1};
    return diopiRequireTensor(ctx, tensor, &size, nullptr, diopi_dtype_uint8, device);
}

diopiError_t diopiGeneratorGetSeedAndOffset(diopiGeneratorHandle_t generator, uint64_t* seed, uint64_t* offset) {
    *seed = generator->seed;
    *offset = generator->offset;
    return diopiSuccess;
}
diopiError_t diopiGeneratorReserve(diopiContextHandle_t, diopiGeneratorHandle_t, uint64_t, const uint64_t** seed,
                                   const uint64_t** offset, uint64_t*) {
    *seed = *offset = nullptr;
    return diopiSuccess;
}

diopiError_t diopiGeneratorSetSeedAndOffset(diopiGeneratorHandle_t generator, uint64_t seed, uint64_t offset) {
    *generator = diopiGenerator{seed, offset};
    return diopiSuccess;
}

}  // extern "C"

// The functions of diopirt.h about contexts, generators and records.
#include <diopi/diopirt.h>
#include <diopi/diopirt_ext.h>

#include <cstring>
#include <vector>

#include "context.h"
#include "error.h"
#include "generator.h"

using diopi::standalone::at_boundary;
using diopi::standalone::Layout;
using diopi::standalone::require;

namespace {

constexpr int64_t kStateBytes = 2 * sizeof(uint64_t);  // the seed, then the offset

std::vector<int64_t> elements(const diopiSize_t& size) { return {size.data, size.data + size.len}; }

}  // namespace

diopiError_t diopiGetStream(diopiContextHandle_t ctx, diopiStreamHandle_t* stream) {
    return at_boundary([&] {
        require(ctx != nullptr && stream != nullptr, "diopiGetStream: the context or the result pointer is null");
        *stream = ctx->stream();
    });
}

diopiError_t diopiRequireTensor(diopiContextHandle_t ctx, diopiTensorHandle_t* tensor, const diopiSize_t* size,
                                const diopiSize_t* stride, const diopiDtype_t dtype, const diopiDevice_t device) {
    return at_boundary([&] {
        require(ctx != nullptr && tensor != nullptr && size != nullptr,
                "diopiRequireTensor: the context, the result pointer or the size is null");
        Layout layout;
        layout.sizes = elements(*size);
        layout.strides = stride != nullptr && stride->data != nullptr
                             ? elements(*stride)
                             : diopi::standalone::row_major_strides(layout.sizes);
        *tensor = ctx->require_tensor(std::move(layout), dtype, device);
    });
}

diopiError_t diopiReturnTensor(diopiContextHandle_t ctx, diopiTensorHandle_t tensor) {
    return at_boundary([&] {
        require(ctx != nullptr && tensor != nullptr, "diopiReturnTensor: the context or the tensor is null");
        ctx->return_tensor(tensor);
    });
}

diopiError_t diopiRequireBuffer(diopiContextHandle_t ctx, diopiTensorHandle_t* tensor, int64_t num_bytes,
                                diopiDevice_t device) {
    const diopiSize_t size = {&num_bytes, 1};
    return diopiRequireTensor(ctx, tensor, &size, nullptr, diopi_dtype_int8, device);
}

diopiError_t diopiGeneratorGetState(diopiContextHandle_t ctx, diopiConstGeneratorHandle_t th,
                                    diopiTensorHandle_t* state) {
    return at_boundary([&] {
        require(ctx != nullptr && th != nullptr && state != nullptr, "diopiGeneratorGetState: an argument is null");
        const uint64_t words[] = {th->seed, th->offset};
        static_assert(sizeof words == kStateBytes, "the state is the seed and the offset");
        *state = ctx->require_tensor(Layout{{kStateBytes}, {1}, 0}, diopi_dtype_uint8, diopi_host);
        (*state)->storage->write(words, sizeof words);
    });
}

diopiError_t diopiGeneratorSetState(diopiGeneratorHandle_t th, diopiConstTensorHandle_t state) {
    return at_boundary([&] {
        require(th != nullptr && state != nullptr, "diopiGeneratorSetState: an argument is null");
        require(state->dtype == diopi_dtype_uint8 && state->numel == kStateBytes && state->storage_offset == 0 &&
                    state->storage->bytes() >= kStateBytes,
                "diopiGeneratorSetState: the state is not one of diopiGeneratorGetState");
        uint64_t words[2];
        state->storage->read(words, sizeof words);
        th->seed = words[0];
        th->offset = words[1];
    });
}

diopiError_t diopiGeneratorGetSeedAndOffset(diopiGeneratorHandle_t th, uint64_t* seed, uint64_t* offset) {
    return at_boundary([&] {
        require(th != nullptr && seed != nullptr && offset != nullptr,
                "diopiGeneratorGetSeedAndOffset: an argument is null");
        *seed = th->seed;
        *offset = th->offset;
    });
}

diopiError_t diopiGeneratorSetSeedAndOffset(diopiGeneratorHandle_t th, uint64_t seed, uint64_t offset) {
    return at_boundary([&] {
        require(th != nullptr, "diopiGeneratorSetSeedAndOffset: the generator is null");
        *th = {seed, offset};
    });
}

// Records are a profiler's; standalone has none, so a record is empty.
diopiError_t diopiRecordStart(const char*, void** record) {
    if (record != nullptr) *record = nullptr;
    return diopiSuccess;
}

diopiError_t diopiRecordEnd(void**) { return diopiSuccess; }

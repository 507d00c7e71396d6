// The functions of diopirt.h over at::Tensor: what a vendor function may ask about its arguments and its context.
//
// A tensor handle is the address of an at::Tensor, a generator handle that of an at::Generator.
#pragma GCC visibility push(default)
#include <diopi/diopirt_ext.h>
#include <diopi/diopirt.h>
#pragma GCC visibility pop

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <iterator>
#include <memory>

#include "captured_draws.h"
#include "generator.h"
#include "memory/allocator.h"
#include "memory/captures.h"
#include "memory/memory_check.h"
#include "stream.h"
#include "wrapper/context.h"
#include "wrapper/handles.h"
#include "wrapper/structured.h"

namespace dipu {
namespace {

const at::Tensor& tensor_at(diopiConstTensorHandle_t th) { return tensor_of(th); }

diopiSize_t borrowed(c10::IntArrayRef values) { return {values.data(), static_cast<int64_t>(values.size())}; }

// torch keeps these as bits of the tensor, but for channels last of three dimensions, which it does not know.
uint32_t known_orders(const at::Tensor& tensor) {
    const uint32_t first = tensor.is_contiguous() ? diopi_order_contiguous : 0;
    const int64_t rank = tensor.dim();
    if (rank != 4 && rank != 5) return first;
    const auto format = rank == 4 ? c10::MemoryFormat::ChannelsLast : c10::MemoryFormat::ChannelsLast3d;
    return first | (tensor.is_contiguous(format) ? diopi_order_channels_last : 0);
}

Generator& generator_of(diopiConstGeneratorHandle_t th) {
    return *at::check_generator<Generator>(*reinterpret_cast<const at::Generator*>(th));
}

// Keeps a tensor alive with the context and returns its handle.
diopiTensorHandle_t keep(diopiContextHandle_t ctx, at::Tensor tensor) {
    ctx->tensors.push_front(std::move(tensor));
    return out_handle(ctx->tensors.front());
}

at::Tensor make_tensor(const diopiContext& ctx, c10::IntArrayRef size, const diopiSize_t* stride, c10::ScalarType dtype,
                       diopiDevice_t device) {
    const bool strided = stride != nullptr && stride->data != nullptr;
    if (device == diopi_host) {
        return strided ? at::Tensor(at::detail::empty_strided_cpu(
                             size, {stride->data, static_cast<std::size_t>(stride->len)}, dtype))
                       : at::Tensor(at::detail::empty_cpu(size, dtype));
    }
    const auto strides =
        strided ? c10::IntArrayRef(stride->data, static_cast<std::size_t>(stride->len)) : c10::IntArrayRef();
    return new_output(size, strides, c10::TensorOptions().dtype(dtype).device(c10::kPrivateUse1, ctx.device));
}

// The memory check looks at the data of each device tensor that a function asks for.
[[gnu::cold, gnu::noinline]] void check_data(diopiConstTensorHandle_t th) {
    const at::Tensor& tensor = tensor_at(th);
    if (tensor.is_privateuseone() && tensor.numel() != 0) {
        const std::size_t bytes = at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize());
        check_memory(tensor.const_data_ptr(), bytes, "vendor function");
    }
}

// Nothing crosses the boundary to C as an exception. What a call asks of its context fails for the call: the exception
// goes on where the call ends.
template <class Body>
diopiError_t guarded(diopiContextHandle_t ctx, Body body) {
    try {
        body();
        ctx->failure = nullptr;
        return diopiSuccess;
    } catch (...) {
        ctx->failure = std::current_exception();
        return diopiErrorOccurred;
    }
}

template <class Body>
diopiError_t guarded(Body body) {
    try {
        body();
        return diopiSuccess;
    } catch (const std::exception& error) {
        TORCH_WARN("dipu: a vendor function's request failed: ", error.what());
        return diopiErrorOccurred;
    }
}

}  // namespace
}  // namespace dipu

extern "C" {

const char* diopiGetVersion(void) { return "DIOPI 1.0.0"; }

diopiError_t diopiGetTensorData(diopiTensorHandle_t th, void** data) {
    if (dipu::checking_memory()) [[unlikely]] {
        dipu::check_data(th);
    }
    *data = dipu::tensor_at(th).unsafeGetTensorImpl()->mutable_data();
    return diopiSuccess;
}

diopiError_t diopiGetTensorDataConst(diopiConstTensorHandle_t th, const void** data) {
    if (dipu::checking_memory()) [[unlikely]] {
        dipu::check_data(th);
    }
    *data = dipu::tensor_at(th).unsafeGetTensorImpl()->data();
    return diopiSuccess;
}

diopiError_t diopiGetTensorShape(diopiConstTensorHandle_t th, diopiSize_t* size) {
    *size = dipu::borrowed(dipu::tensor_at(th).sizes());
    return diopiSuccess;
}

diopiError_t diopiGetTensorStride(diopiConstTensorHandle_t th, diopiSize_t* stride) {
    *stride = dipu::borrowed(dipu::tensor_at(th).strides());
    return diopiSuccess;
}

diopiError_t diopiGetTensorDtype(diopiConstTensorHandle_t th, diopiDtype_t* dtype) {
    *dtype = dipu::diopi_dtype(dipu::tensor_at(th).scalar_type());
    return *dtype == diopi_dtype_unsupported ? diopiDtypeNotSupported : diopiSuccess;
}

diopiError_t diopiGetTensorDevice(diopiConstTensorHandle_t th, diopiDevice_t* device) {
    *device = dipu::tensor_at(th).is_privateuseone() ? diopi_device : diopi_host;
    return diopiSuccess;
}

diopiError_t diopiDescribeTensor(diopiConstTensorHandle_t th, diopiTensorDescription_t* description) {
    const at::Tensor& tensor = dipu::tensor_at(th);
    *description = {tensor.sizes().data(), tensor.strides().data(), tensor.dim(),
                    dipu::diopi_dtype(tensor.scalar_type()), dipu::known_orders(tensor)};
    return description->dtype == diopi_dtype_unsupported ? diopiDtypeNotSupported : diopiSuccess;
}

diopiError_t diopiGetTensorNumel(diopiConstTensorHandle_t th, int64_t* numel) {
    // A null handle stands for an absent optional tensor; established vendors ask it for its size.
    *numel = th == nullptr ? 0 : dipu::tensor_at(th).numel();
    return diopiSuccess;
}

diopiError_t diopiGetTensorElemSize(diopiConstTensorHandle_t th, int64_t* itemsize) {
    *itemsize = static_cast<int64_t>(dipu::tensor_at(th).itemsize());
    return diopiSuccess;
}

diopiError_t diopiGetTensorStoragePtr(diopiConstTensorHandle_t th, void** pointer) {
    *pointer = dipu::tensor_at(th).unsafeGetTensorImpl()->unsafe_storage().mutable_data();
    return diopiSuccess;
}

diopiError_t diopiGetTensorStorageOffset(diopiConstTensorHandle_t th, int64_t* offset) {
    *offset = dipu::tensor_at(th).storage_offset();
    return diopiSuccess;
}

diopiError_t diopiGetTensorStorageNbytes(diopiConstTensorHandle_t th, size_t* nbytes) {
    *nbytes = dipu::tensor_at(th).unsafeGetTensorImpl()->unsafe_storage().nbytes();
    return diopiSuccess;
}

diopiError_t diopiGetTensorDeviceIndex(diopiConstTensorHandle_t th, diopiDeviceIndex_t* index) {
    *index = dipu::tensor_at(th).device().index();
    return diopiSuccess;
}

// Sparse tensors never reach a vendor function: the backend's tensors are strided.
diopiError_t diopiGetTensorCrowIndices(diopiConstTensorHandle_t, diopiConstTensorHandle_t*) { return diopiNoImplement; }
diopiError_t diopiGetTensorColIndices(diopiConstTensorHandle_t, diopiConstTensorHandle_t*) { return diopiNoImplement; }
diopiError_t diopiGetTensorValues(diopiConstTensorHandle_t, diopiConstTensorHandle_t*) { return diopiNoImplement; }

diopiError_t diopiIsTensorSparse(diopiConstTensorHandle_t th, bool* is_sparse) {
    *is_sparse = dipu::tensor_at(th).layout() != c10::kStrided;
    return diopiSuccess;
}

diopiError_t diopiGetCurrentDeviceIndex(diopiDeviceIndex_t* index) {
    *index = dipu::current_device();
    return diopiSuccess;
}

diopiError_t diopiGetStream(diopiContextHandle_t ctx, diopiStreamHandle_t* stream) {
    *stream = ctx->stream;
    return diopiSuccess;
}

diopiError_t diopiRequireTensor(diopiContextHandle_t ctx, diopiTensorHandle_t* tensor, const diopiSize_t* size,
                                const diopiSize_t* stride, const diopiDtype_t dtype, const diopiDevice_t device) {
    return dipu::guarded(ctx, [&] {
        const c10::IntArrayRef sizes(size->data, static_cast<std::size_t>(size->len));
        *tensor = dipu::keep(ctx, dipu::make_tensor(*ctx, sizes, stride, dipu::scalar_type(dtype), device));
    });
}

// torch's words for its CUDA hold for the device dipu as well.
bool diopiMayRoundFloat32(diopiFloat32Use_t use) {
    const at::Float32Op op = use == diopi_products       ? at::Float32Op::MATMUL
                             : use == diopi_convolutions ? at::Float32Op::CONV
                                                         : at::Float32Op::RNN;
    return at::globalContext().float32Precision(at::Float32Backend::CUDA, op) == at::Float32Precision::TF32;
}

diopiError_t diopiReturnTensor(diopiContextHandle_t ctx, diopiTensorHandle_t tensor) {
    // The newest comes first, and is what goes back first or soon after.
    for (auto before = ctx->tensors.before_begin(), each = std::next(before); each != ctx->tensors.end();
         before = each++) {
        if (dipu::out_handle(*each) != tensor) continue;
        if (!ctx->keeps_returned) {
            ctx->tensors.erase_after(before);
        }
        return diopiSuccess;
    }
    return diopiErrorOccurred;
}

diopiError_t diopiRequireBuffer(diopiContextHandle_t ctx, diopiTensorHandle_t* tensor, int64_t num_bytes,
                                diopiDevice_t device) {
    return dipu::guarded(
        ctx, [&] { *tensor = dipu::keep(ctx, dipu::make_tensor(*ctx, {num_bytes}, nullptr, c10::kByte, device)); });
}

diopiError_t diopiGeneratorGetState(diopiContextHandle_t ctx, diopiConstGeneratorHandle_t th,
                                    diopiTensorHandle_t* state) {
    return dipu::guarded(ctx, [&] {
        dipu::check_not_recorded(ctx->device, dipu::kDrawing);
        *state = dipu::keep(ctx, at::Tensor(dipu::generator_of(th).get_state()));
    });
}

diopiError_t diopiGeneratorSetState(diopiGeneratorHandle_t th, diopiConstTensorHandle_t state) {
    return dipu::guarded([&] { dipu::generator_of(th).set_state(*dipu::tensor_at(state).unsafeGetTensorImpl()); });
}

diopiError_t diopiGeneratorReserve(diopiContextHandle_t ctx, diopiGeneratorHandle_t th, uint64_t numbers,
                                   const uint64_t** seed, const uint64_t** offset, uint64_t* position) {
    return dipu::guarded(ctx, [&] {
        *seed = *offset = nullptr;
        dipu::Generator& generator = dipu::generator_of(th);
        const auto point_to = [&](const dipu::CapturedDraws::Reserved& reserved) {
            *seed = reinterpret_cast<const uint64_t*>(reserved.seed.const_data_ptr<int64_t>());
            *offset = reinterpret_cast<const uint64_t*>(reserved.offset.const_data_ptr<int64_t>());
            *position = reserved.position;
        };
        if (generator.stored_seed().defined()) {
            TORCH_CHECK(numbers == 0, "a gradient draws nothing but what its forward operator drew");
            point_to({generator.stored_seed(), generator.stored_offset(), 0});
        } else if (dipu::CapturedDraws* const draws = dipu::recorded_draws(dipu::current_stream(ctx->device))) {
            point_to(draws->reserve(generator, numbers));
        }
    });
}

diopiError_t diopiGeneratorGetSeedAndOffset(diopiGeneratorHandle_t th, uint64_t* seed, uint64_t* offset) {
    return dipu::guarded([&] {
        dipu::check_not_recorded(dipu::generator_of(th).device().index(), dipu::kDrawing);
        *seed = dipu::generator_of(th).current_seed();
        *offset = dipu::generator_of(th).get_offset();
    });
}

diopiError_t diopiGeneratorSetSeedAndOffset(diopiGeneratorHandle_t th, uint64_t seed, uint64_t offset) {
    return dipu::guarded([&] {
        dipu::generator_of(th).set_current_seed(seed);
        dipu::generator_of(th).set_offset(offset);
    });
}

// Records appear in torch's profiler as user scopes.
diopiError_t diopiRecordStart(const char* record_name, void** record) {
    return dipu::guarded([&] {
        auto scope = std::make_unique<at::RecordFunction>(at::RecordScope::USER_SCOPE);
        if (scope->isActive()) {
            scope->before(record_name);
        }
        *record = scope.release();
    });
}

diopiError_t diopiRecordEnd(void** record) {
    delete static_cast<at::RecordFunction*>(*record);
    *record = nullptr;
    return diopiSuccess;
}

}  // extern "C"

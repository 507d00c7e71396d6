// Operators of the tests' own, built into a droplet library: good ones, and ones with faults that libdiopirt.so must
// catch.
#include <diopi/diopirt.h>
#include <diopi/diopirt_ext.h>

#include <cstdint>

#include "core/error.h"
#include "launcher.h"

namespace {

unsigned char* device_memory(diopiTensorHandle_t th) {
    void* data = nullptr;
    diopi::kernels::check(diopiGetTensorData(th, &data));
    return static_cast<unsigned char*>(diopi::launch::device_address(data));
}

diopiError_t copy_of_byte(diopiContextHandle_t ctx, const unsigned char* memory, unsigned char* value) {
    diopiStreamHandle_t stream = nullptr;
    diopi::kernels::check(diopiGetStream(ctx, &stream));
    return diopi::launch::parallel_for(stream, 1,
                                       [=](int64_t) { *value = *static_cast<const volatile unsigned char*>(memory); });
}

diopiError_t write_at(diopiContextHandle_t ctx, diopiTensorHandle_t th, int64_t byte) {
    void* data = nullptr;
    diopiStreamHandle_t stream = nullptr;
    if (diopiGetTensorData(th, &data) != diopiSuccess) return diopiErrorOccurred;
    if (diopiGetStream(ctx, &stream) != diopiSuccess) return diopiErrorOccurred;
    auto* target = static_cast<unsigned char*>(diopi::launch::device_address(data)) + byte;
    return diopi::launch::parallel_for(stream, 1, [target](int64_t) { *target = 1; });
}

}  // namespace

extern "C" {

// out[i] = input[i] * factor, for contiguous float32.
diopiError_t diopiTestScale(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                            double factor) {
    void* target = nullptr;
    const void* source = nullptr;
    int64_t numel = 0;
    diopiStreamHandle_t stream = nullptr;
    return diopi::kernels::guarded([&] {
        diopi::kernels::check(diopiGetTensorData(out, &target));
        diopi::kernels::check(diopiGetTensorDataConst(input, &source));
        diopi::kernels::check(diopiGetTensorNumel(out, &numel));
        diopi::kernels::check(diopiGetStream(ctx, &stream));
        auto* y = static_cast<float*>(diopi::launch::device_address(target));
        const auto* x = static_cast<const float*>(diopi::launch::device_address(source));
        const auto a = static_cast<float>(factor);
        diopi::kernels::check(diopi::launch::parallel_for(stream, numel, [=](int64_t i) { y[i] = a * x[i]; }),
                              "the scaling failed on the device");
    });
}

// Gives the caller a tensor of the context that holds 0, 1, 2 ...
diopiError_t diopiTestCount(diopiContextHandle_t ctx, diopiTensorHandle_t* out, int64_t count) {
    const diopiSize_t size = {&count, 1};
    const diopiError_t status = diopiRequireTensor(ctx, out, &size, nullptr, diopi_dtype_int64, diopi_device);
    if (status != diopiSuccess) return status;
    void* data = nullptr;
    diopiStreamHandle_t stream = nullptr;
    diopiGetTensorData(*out, &data);
    diopiGetStream(ctx, &stream);
    auto* target = static_cast<int64_t*>(diopi::launch::device_address(data));
    return diopi::launch::parallel_for(stream, count, [target](int64_t i) { target[i] = i; });
}

diopiError_t diopiTestWriteAt(diopiContextHandle_t ctx, diopiTensorHandle_t th, int64_t byte) {
    return write_at(ctx, th, byte);
}

// A kernel writes to host memory here, as only droplet's can.
diopiError_t diopiTestReadAt(diopiContextHandle_t ctx, diopiTensorHandle_t th, int64_t byte, unsigned char* value) {
    return copy_of_byte(ctx, device_memory(th) + byte, value);
}

// Reads, or writes, a temporary of 40 bytes that was given back.
diopiError_t diopiTestUseReturned(diopiContextHandle_t ctx, bool writes, diopiDevice_t device) {
    diopiTensorHandle_t th = nullptr;
    diopi::kernels::check(diopiRequireBuffer(ctx, &th, 40, device));
    auto* memory = static_cast<volatile unsigned char*>(device_memory(th));
    diopi::kernels::check(diopiReturnTensor(ctx, th));
    diopiStreamHandle_t stream = nullptr;
    diopi::kernels::check(diopiGetStream(ctx, &stream));
    return diopi::launch::parallel_for(stream, 1, [=](int64_t) { writes ? void(memory[3] = 1) : void(memory[3]); });
}

// Reads a tensor that the caller has destroyed.
diopiError_t diopiTestReadMemory(diopiContextHandle_t ctx, void* data, unsigned char* value) {
    return copy_of_byte(ctx, static_cast<unsigned char*>(diopi::launch::device_address(data)), value);
}

diopiError_t diopiTestReadBack(diopiContextHandle_t ctx, diopiConstTensorHandle_t th, int64_t* value) {
    const void* data = nullptr;
    diopiStreamHandle_t stream = nullptr;
    diopiGetTensorDataConst(th, &data);
    diopiGetStream(ctx, &stream);
    return diopi::launch::copy_to_host(stream, value, diopi::launch::device_address(data), sizeof *value);
}

diopiError_t diopiTestGemm(diopiContextHandle_t ctx, int dtype, bool trans_a, bool trans_b, int64_t m, int64_t n,
                           int64_t k, double alpha, diopiConstTensorHandle_t a, int64_t lda, diopiConstTensorHandle_t b,
                           int64_t ldb, double beta, diopiTensorHandle_t c, int64_t ldc, int64_t batch,
                           const int64_t* strides) {
    const void* a_data = nullptr;
    const void* b_data = nullptr;
    void* c_data = nullptr;
    diopiStreamHandle_t stream = nullptr;
    diopiGetTensorDataConst(a, &a_data);
    diopiGetTensorDataConst(b, &b_data);
    diopiGetTensorData(c, &c_data);
    diopiGetStream(ctx, &stream);
    return diopi::launch::gemm(stream, static_cast<diopiDtype_t>(dtype), trans_a, trans_b, m, n, k, alpha, a_data, lda,
                               b_data, ldb, beta, c_data, ldc, batch, strides[0], strides[1], strides[2]);
}

}  // extern "C"

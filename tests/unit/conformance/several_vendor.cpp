// A vendor with what is unlike all other functions: several tensors behind one handle, and memory formats of its own.
#include "host_vendor.h"

namespace {

enum Fault { none, gives_one, gives_nothing, tells_nothing, casts_to_zeros };

diopiError_t copied(diopiContextHandle_t ctx, diopiTensorHandle_t* out, diopiConstTensorHandle_t like, bool zeros) {
    diopiSize_t sizes, strides;
    diopiDtype_t dtype;
    int64_t count = 0, bytes = 0;
    void *from = nullptr, *to = nullptr;
    diopiGetTensorShape(like, &sizes);
    diopiGetTensorStride(like, &strides);
    diopiGetTensorDtype(like, &dtype);
    diopiGetTensorNumel(like, &count);
    diopiGetTensorElemSize(like, &bytes);
    diopiRequireTensor(ctx, out, &sizes, &strides, dtype, diopi_device);
    diopiGetTensorData(const_cast<diopiTensorHandle_t>(like), &from);
    diopiGetTensorData(*out, &to);
    if (zeros)
        std::memset(to, 0, static_cast<size_t>(count * bytes));
    else
        std::memcpy(to, from, static_cast<size_t>(count * bytes));
    return diopiSuccess;
}

float* floats(diopiConstTensorHandle_t tensor) {
    void* data = nullptr;
    diopiGetTensorData(const_cast<diopiTensorHandle_t>(tensor), &data);
    return static_cast<float*>(data);
}

int64_t size(diopiConstTensorHandle_t tensor, int64_t dim) {
    diopiSize_t sizes;
    diopiGetTensorShape(tensor, &sizes);
    return sizes.data[dim < 0 ? sizes.len + dim : dim];
}

}  // namespace

extern "C" {

// For contiguous float32 only, and without regard to the middle of a kernel: its pairs lead each voxel to itself.
diopiError_t diopiIndiceConvBackwardMmcv(diopiContextHandle_t ctx, diopiTensorHandle_t* outlist,
                                         diopiConstTensorHandle_t features, diopiConstTensorHandle_t filters,
                                         diopiConstTensorHandle_t outGrad, diopiConstTensorHandle_t indicePairs,
                                         diopiConstTensorHandle_t indiceNum, int64_t _inverse, int64_t) {
    if (FAULT == gives_nothing) return diopiSuccess;
    copied(ctx, &outlist[0], features, true);
    if (FAULT == gives_one) return diopiSuccess;
    copied(ctx, &outlist[1], filters, true);
    const int64_t ins = size(features, 1), outs = size(outGrad, 1), room = size(indicePairs, 2);
    const int32_t* pairs = reinterpret_cast<int32_t*>(floats(indicePairs));
    const int32_t* counts = reinterpret_cast<int32_t*>(floats(indiceNum));
    for (int64_t k = 0; k < size(indicePairs, 0); ++k) {
        for (int64_t p = 0; p < counts[k]; ++p) {
            const int64_t source = pairs[(2 * k + (_inverse ? 1 : 0)) * room + p];
            const int64_t target = pairs[(2 * k + (_inverse ? 0 : 1)) * room + p];
            for (int64_t i = 0; i < ins; ++i) {
                for (int64_t o = 0; o < outs; ++o) {
                    const float grad = floats(outGrad)[target * outs + o];
                    floats(outlist[0])[source * ins + i] += grad * floats(filters)[(k * ins + i) * outs + o];
                    floats(outlist[1])[(k * ins + i) * outs + o] += grad * floats(features)[source * ins + i];
                }
            }
        }
    }
    return diopiSuccess;
}

diopiError_t diopiNativeMemoryFormatCast(diopiContextHandle_t ctx, diopiTensorHandle_t* out, diopiTensorHandle_t in,
                                         int64_t format) {
    if (format != 29) return diopiErrorOccurred;
    return copied(ctx, out, in, FAULT == casts_to_zeros);
}

diopiError_t diopiGetNativeMemoryFormat(diopiContextHandle_t, diopiConstTensorHandle_t, int64_t* format) {
    if (FAULT != tells_nothing) *format = 29;
    return diopiSuccess;
}

}  // extern "C"

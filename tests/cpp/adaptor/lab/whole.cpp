// A runtime that describes a tensor in one call, as newer frameworks do.
#include <diopi/diopirt_ext.h>

extern "C" diopiError_t diopiDescribeTensor(diopiConstTensorHandle_t th, diopiTensorDescription_t* description) {
    diopiSize_t sizes{nullptr, 0};
    diopiSize_t strides{nullptr, 0};
    diopiError_t status = diopiGetTensorDtype(th, &description->dtype);
    if (status == diopiSuccess) status = diopiGetTensorShape(th, &sizes);
    if (status == diopiSuccess) status = diopiGetTensorStride(th, &strides);
    description->sizes = sizes.data;
    description->strides = strides.data;
    description->rank = sizes.len;
    return status;
}

// Where a description comes from: one function of the framework, or those that the contract asks of every framework.
#include "describe.h"

namespace diopi::adaptor {

namespace {

diopiError_t describe_by_parts(diopiConstTensorHandle_t tensor, Description* description) {
    diopiSize_t sizes{nullptr, 0};
    diopiSize_t strides{nullptr, 0};
    diopiError_t status = diopiGetTensorDtype(tensor, &description->dtype);
    if (status == diopiSuccess) status = diopiGetTensorShape(tensor, &sizes);
    if (status == diopiSuccess) status = diopiGetTensorStride(tensor, &strides);
    description->sizes = sizes.data;
    description->strides = strides.data;
    description->rank = sizes.len;
    return status;
}

}  // namespace

const Describe describe = diopiDescribeTensor != nullptr ? diopiDescribeTensor : describe_by_parts;

}  // namespace diopi::adaptor

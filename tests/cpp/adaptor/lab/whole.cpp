// A runtime that describes a tensor in one call, as newer frameworks do. Of half of all shapes it knows the orders, so that
// the adaptor both takes its word and looks by itself.
#include <contract/memory_order.h>

#include <numeric>

extern "C" diopiError_t diopiDescribeTensor(diopiConstTensorHandle_t th, diopiTensorDescription_t* description) {
    diopiSize_t sizes{nullptr, 0};
    diopiSize_t strides{nullptr, 0};
    diopiError_t status = diopiGetTensorDtype(th, &description->dtype);
    if (status == diopiSuccess) status = diopiGetTensorShape(th, &sizes);
    if (status == diopiSuccess) status = diopiGetTensorStride(th, &strides);
    description->sizes = sizes.data;
    description->strides = strides.data;
    description->rank = sizes.len;
    if (std::accumulate(sizes.data, sizes.data + sizes.len, int64_t{0}) % 2 == 0) {
        description->orders = diopi::contract::orders_of(sizes.data, strides.data, sizes.len);
    }
    return status;
}

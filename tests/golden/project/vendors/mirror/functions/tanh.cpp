// The one function that is written by hand, so that the generated one gives way.
#include <ATen/ops/tanh.h>
#include <diopi/functions.h>

namespace impl::mirror {

diopiError_t diopiTanh(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    at::tanh_out(out, input);
    return diopiSuccess;
}

}  // namespace impl::mirror

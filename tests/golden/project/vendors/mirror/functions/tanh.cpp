// The one function that is written by hand, so that the generated one gives way.
#include <ATen/ops/tanh.h>
#include <diopi/functions.h>

#include "aten/call.h"

namespace impl::mirror {

diopiError_t diopiTanh(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    return diopi::aten::guarded([&] { diopi::aten::write(out, at::tanh(diopi::aten::tensor(input))); });
}

}  // namespace impl::mirror

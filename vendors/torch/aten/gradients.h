// Backward functions that ATen has no operator for: the forward is computed again and differentiated.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace diopi::aten {

using Tensors = std::vector<at::Tensor>;

// What `grad_outputs`, one for each output of `forward`, are to each of `inputs`. An undefined input is passed on as it
// is and has an undefined gradient; an undefined gradient of an output counts as zero.
Tensors gradients(const Tensors& inputs, const Tensors& grad_outputs,
                  const std::function<Tensors(const Tensors&)>& forward);

}  // namespace diopi::aten

// How a convolution is computed: what cuDNN was told of it, once, and the kernel that its heuristics chose.
#pragma once

#include <cudnn.h>

#include <memory>

#include "launch/library_convolution.h"

namespace diopi::launch {

class ConvolutionPlan {
public:
    virtual ~ConvolutionPlan() = default;
    virtual bool is_runnable() const = 0;
    // As convolve().
    virtual void execute(cudnnHandle_t handle, const void* first, const void* second, double beta, void* result,
                         const Workspace& workspace) const = 0;
};

// Each channel has filters of its own: cuDNN has fast kernels for planes with channels innermost, which only its graphs
// name. None otherwise.
std::unique_ptr<const ConvolutionPlan> depthwise_plan(cudnnHandle_t handle, const LibraryConvolution& problem);

}  // namespace diopi::launch

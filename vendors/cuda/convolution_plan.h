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
    virtual void execute(cudnnHandle_t handle, const void* first, const void* second, const void* bias, void* result,
                         const Workspace& workspace) const = 0;
};

// Whether each channel has filters of its own.
inline bool is_depthwise(const LibraryConvolution& problem) { return problem.groups > 1 && problem.filters[1] == 1; }

// By cuDNN's graphs: its newest kernels, the only fast ones of depthwise convolutions, and those that add a bias. None where
// they have no kernel, or one that is slower than others or cuts the factors of float32 unasked.
std::unique_ptr<const ConvolutionPlan> graph_plan(cudnnHandle_t handle, const LibraryConvolution& problem);

}  // namespace diopi::launch

// Resampling where one function is an operator of ATen for each number of dimensions.
#include <ATen/ops/grid_sampler.h>
#include <ATen/ops/upsample_nearest1d.h>
#include <ATen/ops/upsample_nearest1d_backward.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <ATen/ops/upsample_nearest2d_backward.h>
#include <ATen/ops/upsample_nearest3d.h>
#include <ATen/ops/upsample_nearest3d_backward.h>
#include <diopi/functions.h>

#include "aten/wide.h"

namespace impl::torch {

using namespace diopi::aten;

namespace {

at::Tensor nearest(const at::Tensor& input, at::IntArrayRef size) {
    switch (size.size()) {
        case 1: return at::upsample_nearest1d(input, size);
        case 2: return at::upsample_nearest2d(input, size);
        case 3: return at::upsample_nearest3d(input, size);
        default: refuse("this number of dimensions");
    }
}

at::Tensor nearest_backward(const at::Tensor& grad, at::IntArrayRef out_size, at::IntArrayRef in_size) {
    switch (out_size.size()) {
        case 1: return at::upsample_nearest1d_backward(grad, out_size, in_size);
        case 2: return at::upsample_nearest2d_backward(grad, out_size, in_size);
        case 3: return at::upsample_nearest3d_backward(grad, out_size, in_size);
        default: refuse("this number of dimensions");
    }
}

// ATen's numbers for the words.
int64_t interpolation(std::string_view mode) {
    if (mode == "bilinear") return 0;
    if (mode == "nearest") return 1;
    if (mode == "bicubic") return 2;
    refuse("this mode of interpolation");
}

}  // namespace

diopiError_t diopiUpsampleNearest(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                  diopiSize_t size) {
    return guarded([&] { write(out, nearest(tensor(input), ints(size))); });
}

diopiError_t diopiUpsampleNearestBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                          diopiConstTensorHandle_t grad_output, diopiSize_t out_size,
                                          diopiSize_t in_size) {
    return guarded([&] { write(grad_input, nearest_backward(tensor(grad_output), ints(out_size), ints(in_size))); });
}

// Zeros outside, and -1 and 1 at the outer edges: what the contract does not let the caller choose.
diopiError_t diopiGridSample(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                             diopiConstTensorHandle_t grid, const char* mode) {
    return guarded([&] { write(out, at::grid_sampler(wide(input), wide(grid), interpolation(mode), 0, false)); });
}

}  // namespace impl::torch

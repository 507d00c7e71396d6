// A launcher of plain loops that has convolutions of halves by a library, which has them for whole steps of channels
// with the channels innermost only, no gradient for many filters, and no bias for large ones.
#pragma once

// clang-format off
#include "launch/host.h"
#include "launch/library_convolution.h"
// clang-format on

#include <vector>

#include "core/half.h"

#define DIOPI_LAUNCHER_HAS_CONVOLUTIONS

namespace diopi::launch {

inline int convolution_calls[3];  // by step

// What the tests ask.
extern "C" __attribute__((used, visibility("default"))) inline int library_convolution_calls(int step) {
    return convolution_calls[step];
}

// It does not look at dtypes: what is not wide is read as bfloat16.
inline bool has_convolution(const LibraryConvolution& p) {
    const bool wide = p.dtype == diopi_dtype_float32 || p.dtype == diopi_dtype_float64;
    const bool lacks = p.step == ConvolutionStep::kBackwardWeight && p.filters[0] > 32;
    return !(p.biased && p.filters[3] > 3) && !wide && p.channels_last && p.rank == 2 && p.groups == 1 &&
           p.filters[0] % 8 == 0 && p.filters[1] % 8 == 0 && !lacks;
}

// Calls f(input, filter, output), the places of the elements that are multiplied or that the product goes to.
template <class F>
void for_each_product(const LibraryConvolution& p, F&& f) {
    const auto place = [](const int64_t* sizes, int64_t n, int64_t c, int64_t y, int64_t x) {
        return static_cast<size_t>(((n * sizes[3] + y) * sizes[4] + x) * sizes[1] + c);
    };
    for (int64_t n = 0; n < p.output[0]; ++n)
        for (int64_t o = 0; o < p.output[1]; ++o)
            for (int64_t i = 0; i < p.output[3] * p.output[4]; ++i)
                for (int64_t k = 0; k < p.filters[3] * p.filters[4]; ++k) {
                    const int64_t y = i / p.output[4], x = i % p.output[4];
                    const int64_t v = k / p.filters[4], u = k % p.filters[4];
                    const int64_t from_y = y * p.stride[1] - p.padding[1] + v * p.dilation[1];
                    const int64_t from_x = x * p.stride[2] - p.padding[2] + u * p.dilation[2];
                    if (from_y < 0 || from_y >= p.input[3] || from_x < 0 || from_x >= p.input[4]) continue;
                    for (int64_t c = 0; c < p.filters[1]; ++c)
                        f(place(p.input, n, c, from_y, from_x), place(p.filters, o, c, v, u),
                          place(p.output, n, o, y, x));
                }
}

inline diopiError_t convolve(diopiStreamHandle_t, const LibraryConvolution& p, const void* first, const void* second,
                             const void* bias, void* result, const Workspace&) {
    ++convolution_calls[static_cast<int>(p.step)];
    const int64_t* sizes = p.step == ConvolutionStep::kForward         ? p.output
                           : p.step == ConvolutionStep::kBackwardInput ? p.input
                                                                       : p.filters;
    std::vector<float> sums(static_cast<size_t>(sizes[0] * sizes[1] * sizes[3] * sizes[4]));
    const auto value = [](const void* data, size_t at) {
        return static_cast<float>(static_cast<const kernels::BFloat16*>(data)[at]);
    };
    for_each_product(p, [&](size_t input, size_t filter, size_t output) {
        switch (p.step) {
            case ConvolutionStep::kForward: sums[output] += value(first, input) * value(second, filter); break;
            case ConvolutionStep::kBackwardInput: sums[input] += value(first, output) * value(second, filter); break;
            case ConvolutionStep::kBackwardWeight: sums[filter] += value(first, output) * value(second, input); break;
        }
    });
    for (size_t i = 0; i < sums.size(); ++i) {
        if (p.biased) sums[i] += value(bias, i % static_cast<size_t>(p.filters[0]));
        static_cast<kernels::BFloat16*>(result)[i] = kernels::BFloat16(sums[i]);
    }
    return diopiSuccess;
}

}  // namespace diopi::launch

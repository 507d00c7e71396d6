// Depthwise convolutions by cuDNN's graphs.
#include <algorithm>

#include "convolution_plan.h"
#include "cudnn_graph.h"

namespace diopi::launch {
namespace {

enum Name : int64_t { kFirst = 1, kSecond, kResult };  // tensors in a graph, as convolve() has them

class Plan : public ConvolutionPlan, CudnnGraph {
public:
    Plan(cudnnHandle_t handle, const LibraryConvolution& p) {
        build(handle, p.dtype, [&] {
            using namespace fe::graph;
            const Tensor a = input(layout(kFirst, p.step == ConvolutionStep::kForward ? p.input : p.output));
            const Tensor b = input(layout(kSecond, p.step == ConvolutionStep::kBackwardWeight ? p.input : p.filters));
            switch (p.step) {
                case ConvolutionStep::kForward:
                    give(graph_.conv_fprop(a, b, window<Conv_fprop_attributes>(p)), layout(kResult, p.output));
                    break;
                case ConvolutionStep::kBackwardInput:
                    give(graph_.conv_dgrad(a, b, window<Conv_dgrad_attributes>(p)), layout(kResult, p.input));
                    break;
                case ConvolutionStep::kBackwardWeight:
                    give(graph_.conv_wgrad(a, b, window<Conv_wgrad_attributes>(p)), layout(kResult, p.filters));
                    break;
            }
            return false;
        });
    }

    bool is_runnable() const override { return CudnnGraph::is_runnable(); }

    void execute(cudnnHandle_t handle, const void* first, const void* second, double beta, void* result,
                 const Workspace& workspace) const override {
        kernels::require(beta == 0, "cuDNN's graphs write their results");
        std::unordered_map<int64_t, void*> places{
            {kFirst, const_cast<void*>(first)}, {kSecond, const_cast<void*>(second)}, {kResult, result}};
        run(handle, places, bytes() == 0 ? nullptr : workspace(bytes()));
    }

private:
    template <class Attributes>
    static Attributes window(const LibraryConvolution& p) {
        const auto planar = [](const int64_t (&sizes)[3]) { return std::vector<int64_t>{sizes[1], sizes[2]}; };
        Attributes attributes;
        return attributes.set_padding(planar(p.padding)).set_stride(planar(p.stride)).set_dilation(planar(p.dilation));
    }

    // Sizes are NCHW, memory is NHWC.
    static Layout layout(Name name, const int64_t (&sizes)[5]) {
        const int64_t channels = sizes[1], row = channels * sizes[4];
        return {name, {sizes[0], channels, sizes[3], sizes[4]}, {row * sizes[3], 1, row, channels}};
    }
};

// Gradients of float32 weights for which cuDNN has no fast kernel: with more than 5 columns, or with gaps between them, its
// take 1.5 to 10 times as long as ours on an H200.
bool is_slow(const LibraryConvolution& p) {
    return p.dtype == diopi_dtype_float32 && p.step == ConvolutionStep::kBackwardWeight &&
           (std::max(p.filters[3], p.filters[4]) > 5 || std::max(p.dilation[1], p.dilation[2]) > 1);
}

}  // namespace

std::unique_ptr<const ConvolutionPlan> depthwise_plan(cudnnHandle_t handle, const LibraryConvolution& problem) {
    if (problem.dtype == diopi_dtype_float64 || !problem.channels_last || problem.rank != 2 || is_slow(problem))
        return nullptr;
    return std::make_unique<const Plan>(handle, problem);
}

}  // namespace diopi::launch

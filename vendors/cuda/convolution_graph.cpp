// Convolutions of planes by cuDNN's graphs.
#include <algorithm>

#include "convolution_plan.h"
#include "cudnn_graph.h"
#include "launch/precision.h"

namespace diopi::launch {
namespace {

// Products of float32 whose factors may not be cut.
bool has_all_digits(const LibraryConvolution& p) {
    return p.dtype == diopi_dtype_float32 && !p.holds_halves && !may_round(diopi_convolutions);
}

enum Name : int64_t { kFirst = 1, kSecond, kBias, kResult };  // tensors in a graph, as convolve() has them

class Plan : public ConvolutionPlan, CudnnGraph {
public:
    Plan(cudnnHandle_t handle, const LibraryConvolution& p) {
        build(handle, p.dtype, barred(p), [&] {
            using namespace fe::graph;
            const Tensor a = input(layout(p, kFirst, p.step == ConvolutionStep::kForward ? p.input : p.output));
            const Tensor b =
                input(layout(p, kSecond, p.step == ConvolutionStep::kBackwardWeight ? p.input : p.filters));
            switch (p.step) {
                case ConvolutionStep::kForward:
                    give(with_bias(p, graph_.conv_fprop(a, b, window<Conv_fprop_attributes>(p))),
                         layout(p, kResult, p.output));
                    break;
                case ConvolutionStep::kBackwardInput:
                    give(graph_.conv_dgrad(a, b, window<Conv_dgrad_attributes>(p)), layout(p, kResult, p.input));
                    break;
                case ConvolutionStep::kBackwardWeight:
                    give(graph_.conv_wgrad(a, b, window<Conv_wgrad_attributes>(p)), layout(p, kResult, p.filters));
                    break;
            }
        });
    }

    bool is_runnable() const override { return CudnnGraph::is_runnable(); }

    void execute(cudnnHandle_t handle, const void* first, const void* second, const void* bias, void* result,
                 const Workspace& workspace) const override {
        std::unordered_map<int64_t, void*> places{
            {kFirst, const_cast<void*>(first)}, {kSecond, const_cast<void*>(second)}, {kResult, result}};
        if (bias != nullptr) places.emplace(kBias, const_cast<void*>(bias));
        run(handle, places, bytes() == 0 ? nullptr : workspace(bytes()));
    }

private:
    Tensor with_bias(const LibraryConvolution& p, const Tensor& sums) {
        if (!p.biased) return sums;
        const Tensor bias = input({kBias, {1, p.filters[0], 1, 1}, {p.filters[0], 1, p.filters[0], p.filters[0]}});
        return graph_.pointwise(sums, bias, fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::ADD));
    }

    template <class Attributes>
    static Attributes window(const LibraryConvolution& p) {
        const auto planar = [](const int64_t (&sizes)[3]) { return std::vector<int64_t>{sizes[1], sizes[2]}; };
        Attributes attributes;
        return attributes.set_padding(planar(p.padding)).set_stride(planar(p.stride)).set_dilation(planar(p.dilation));
    }

    // Sizes are NCHW.
    static Layout layout(const LibraryConvolution& p, Name name, const int64_t (&sizes)[5]) {
        const int64_t channels = sizes[1], rows = sizes[3], columns = sizes[4], image = channels * rows * columns;
        const std::vector<int64_t> last{image, 1, columns * channels, channels},
            first{image, rows * columns, columns, 1};
        return {name, {sizes[0], channels, rows, columns}, p.channels_last ? last : first};
    }

    // Results are the same in each run, and products of halves are summed as they are.
    static std::vector<Note> barred(const LibraryConvolution& p) {
        if (has_all_digits(p)) return {Note::NONDETERMINISTIC, Note::TENSOR_CORE, Note::DOWN_CONVERT_INPUTS};
        if (p.dtype == diopi_dtype_float32 && !p.holds_halves) return {Note::NONDETERMINISTIC};
        return {Note::NONDETERMINISTIC, Note::REDUCED_PRECISION_REDUCTION, Note::FFT, Note::WINOGRAD};
    }
};

// Gradients of float32 weights for which cuDNN has no fast kernel: with more than 5 columns, or with gaps between them, its
// take 1.5 to 10 times as long as ours on an H200.
bool is_slow(const LibraryConvolution& p) {
    return is_depthwise(p) && p.dtype == diopi_dtype_float32 && p.step == ConvolutionStep::kBackwardWeight &&
           (std::max(p.filters[3], p.filters[4]) > 5 || std::max(p.dilation[1], p.dilation[2]) > 1);
}

}  // namespace

std::unique_ptr<const ConvolutionPlan> graph_plan(cudnnHandle_t handle, const LibraryConvolution& problem) {
    if (problem.dtype == diopi_dtype_float64 || problem.rank != 2 || is_slow(problem)) return nullptr;
    if (is_depthwise(problem) ? problem.biased : has_all_digits(problem)) return nullptr;
    auto plan = std::make_unique<const Plan>(handle, problem);
    return plan->is_runnable() ? std::move(plan) : nullptr;
}

}  // namespace diopi::launch

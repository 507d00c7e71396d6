// Convolutions by cuDNN's graphs: its heuristics choose the kernel, once for each problem and thread.
#include <algorithm>
#include <array>
#include <memory>

#include "cudnn_graph.h"
#include "cudnn_handle.h"
#include "launch/library_convolution.h"
#include "launch/precision.h"
#include "library_handles.h"

namespace diopi::launch {
namespace {

// Products of halves are summed in float32, those of float32 without shortened factors unless the framework allows it; but
// TF32 has all digits of halves.
bool has_all_digits(const LibraryConvolution& p) {
    return p.dtype == diopi_dtype_float32 && !p.holds_halves && !may_round(diopi_convolutions);
}

bool is_depthwise(const LibraryConvolution& p) { return p.groups > 1 && p.filters[1] == 1; }

enum Name : int64_t { kFirst = 1, kSecond, kBias, kResult };  // tensors in a graph, as convolve() has them

class Plan : public CudnnGraph {
public:
    // Results are the same in each run, so that sums in any order are barred. What heuristics choose next for the weight's
    // gradient of few filters of float32 takes 1.5 to 5 times as long as Fourier transforms do on an H200.
    Plan(cudnnHandle_t handle, const LibraryConvolution& p) {
        std::vector<Note> barred{Note::NONDETERMINISTIC}, wanted;
        if (p.dtype != diopi_dtype_float32 || p.holds_halves) {
            barred.insert(barred.end(), {Note::REDUCED_PRECISION_REDUCTION, Note::FFT, Note::WINOGRAD});
        } else if (has_all_digits(p)) {
            barred.insert(barred.end(), {Note::TENSOR_CORE, Note::DOWN_CONVERT_INPUTS});
            const bool few = p.filters[0] <= 4 && !p.channels_last && p.step == ConvolutionStep::kBackwardWeight;
            if (few) wanted.push_back(Note::FFT);
        }
        build(handle, p.dtype, barred, [&] { add(p); }, wanted);
        if (!wanted.empty() && !is_runnable()) build(handle, p.dtype, barred, [&] { add(p); });
    }

    void execute(cudnnHandle_t handle, const void* first, const void* second, const void* bias, void* result,
                 const Workspace& workspace) const {
        std::unordered_map<int64_t, void*> places{
            {kFirst, const_cast<void*>(first)}, {kSecond, const_cast<void*>(second)}, {kResult, result}};
        if (bias != nullptr) places.emplace(kBias, const_cast<void*>(bias));
        run(handle, places, bytes() == 0 ? nullptr : workspace(bytes()));
    }

private:
    void add(const LibraryConvolution& p) {
        using namespace fe::graph;
        const Tensor a = input(layout(p, kFirst, p.step == ConvolutionStep::kForward ? p.input : p.output));
        const Tensor b = input(layout(p, kSecond, p.step == ConvolutionStep::kBackwardWeight ? p.input : p.filters));
        switch (p.step) {
            case ConvolutionStep::kForward:
                return give(with_bias(p, graph_.conv_fprop(a, b, window<Conv_fprop_attributes>(p))),
                            layout(p, kResult, p.output));
            case ConvolutionStep::kBackwardInput:
                return give(graph_.conv_dgrad(a, b, window<Conv_dgrad_attributes>(p)), layout(p, kResult, p.input));
            case ConvolutionStep::kBackwardWeight:
                return give(graph_.conv_wgrad(a, b, window<Conv_wgrad_attributes>(p)), layout(p, kResult, p.filters));
        }
    }

    Tensor with_bias(const LibraryConvolution& p, const Tensor& sums) {
        if (!p.biased) return sums;
        const int64_t sizes[5] = {1, p.filters[0], 1, 1, 1};
        return graph_.pointwise(sums, input(layout(p, kBias, sizes)),
                                fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::ADD));
    }

    template <class Attributes>
    static Attributes window(const LibraryConvolution& p) {
        const auto axes = [&](const int64_t (&all)[3]) { return std::vector<int64_t>(all + 3 - p.rank, all + 3); };
        return Attributes().set_padding(axes(p.padding)).set_stride(axes(p.stride)).set_dilation(axes(p.dilation));
    }

    // Sizes are NCDHW, or NCHW.
    static Layout layout(const LibraryConvolution& p, Name name, const int64_t (&all)[5]) {
        std::vector<int64_t> sizes{all[0], all[1]};
        sizes.insert(sizes.end(), all + 5 - p.rank, all + 5);
        std::vector<int64_t> strides(sizes.size());
        int64_t step = p.channels_last ? sizes[1] : 1;
        for (size_t i = sizes.size(); i-- > 2; step *= sizes[i]) strides[i] = step;
        strides[1] = p.channels_last ? 1 : step;
        strides[0] = p.channels_last ? step : step * sizes[1];
        return {name, sizes, strides};
    }
};

// Those for which cuDNN has no fast kernel: it adds no bias to depthwise ones, and takes 1.5 to 10 times as long as ours for
// the gradients of their float32 weights with more than 5 columns, or with gaps between them, on an H200.
bool is_slow(const LibraryConvolution& p) {
    if (!is_depthwise(p)) return false;
    if (p.biased) return true;
    return p.dtype == diopi_dtype_float32 && p.step == ConvolutionStep::kBackwardWeight &&
           (std::max(p.filters[3], p.filters[4]) > 5 || std::max(p.dilation[1], p.dilation[2]) > 1);
}

using Key = std::array<int64_t, 30>;

Key plan_key(const LibraryConvolution& p) {
    const int flags = (p.holds_halves ? 1 : 0) | (may_round(diopi_convolutions) ? 2 : 0) | (p.biased ? 4 : 0);
    Key key{static_cast<int64_t>(p.step), p.dtype, flags, p.channels_last ? 1 : 0, p.rank, p.groups};
    auto at = key.begin() + 6;
    for (const auto* sizes : {&p.input, &p.filters, &p.output}) at = std::copy(*sizes, *sizes + 5, at);
    for (const auto* sizes : {&p.padding, &p.stride, &p.dilation}) at = std::copy(*sizes, *sizes + 3, at);
    return key;
}

const Plan* plan_of(const LibraryConvolution& problem) {
    const cudnnHandle_t handle = cudnn();  // made before the plans, so that it outlives them
    thread_local ByDevice<PlanCache<Key, Plan>> plans;
    return plans.current().cached(plan_key(problem), [&]() -> std::unique_ptr<const Plan> {
        return is_slow(problem) ? nullptr : std::make_unique<const Plan>(handle, problem);
    });
}

}  // namespace

bool has_convolution(const LibraryConvolution& problem) {
    const Plan* plan = plan_of(problem);
    return plan != nullptr && plan->is_runnable();
}

diopiError_t convolve(diopiStreamHandle_t stream, const LibraryConvolution& problem, const void* first,
                      const void* second, const void* bias, void* result, const Workspace& workspace) {
    return kernels::guarded([&] {
        plan_of(problem)->execute(cudnn_on(static_cast<cudaStream_t>(stream)), first, second, bias, result, workspace);
    });
}

}  // namespace diopi::launch

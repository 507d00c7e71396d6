// Convolutions by cuDNN: its heuristics choose the kernel, once for each problem and thread.
#include <cuda_runtime.h>
#include <cudnn.h>

#include <algorithm>
#include <array>
#include <memory>

#include "convolution_plan.h"
#include "cudnn_handle.h"
#include "library_handles.h"
#include "core/error.h"
#include "core/launcher.h"
#include "launch/precision.h"

namespace diopi::launch {
namespace {

template <class D, auto create, auto destroy>
using Descriptor = LibraryHandle<D, kCudnn, create, destroy>;
using TensorDescriptor = Descriptor<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;

struct Kind {
    cudnnDataType_t data, compute;
    cudnnMathType_t math;
    bool halves;
};

// Products of halves are summed in float32, those of float32 without shortened factors unless the framework allows it; but
// TF32 has all digits of halves.
bool kind_of(const LibraryConvolution& problem, Kind* kind) {
    const bool halves = problem.holds_halves;
    switch (problem.dtype) {
        case diopi_dtype_float16: *kind = {CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, CUDNN_TENSOR_OP_MATH, true}; return true;
        case diopi_dtype_bfloat16:
            *kind = {CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT, CUDNN_TENSOR_OP_MATH, true};
            return true;
        case diopi_dtype_float32:
            *kind = {CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT,
                     halves || may_round(diopi_convolutions) ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH, halves};
            return true;
        case diopi_dtype_float64:
            *kind = {CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE, CUDNN_DEFAULT_MATH, false};
            return true;
        default: return false;
    }
}

// Without the depth of planes, as cuDNN wants sizes; false where one is beyond its ints.
bool planar_sizes(const int64_t* sizes, int count, int skipped, int* result) {
    for (int i = 0; i < count; ++i) {
        if (i == skipped) continue;
        if (sizes[i] <= 0 || sizes[i] > INT32_MAX) return false;
        *result++ = static_cast<int>(sizes[i]);
    }
    return true;
}

// A problem with its descriptors and the kernel that cuDNN would choose.
class Plan : public ConvolutionPlan {
public:
    Plan(cudnnHandle_t handle, const LibraryConvolution& problem) : step_(problem.step) {
        Kind kind{};
        if (!kind_of(problem, &kind)) return;
        const int skipped = problem.rank == 2 ? 2 : -1, ndim = problem.rank + 2;
        int input[5], filters[5], output[5], padding[3], stride[3], dilation[3];
        if (!planar_sizes(problem.input, 5, skipped, input) || !planar_sizes(problem.filters, 5, skipped, filters) ||
            !planar_sizes(problem.output, 5, skipped, output) ||
            !planar_sizes(problem.stride, 3, skipped - 2, stride) ||
            !planar_sizes(problem.dilation, 3, skipped - 2, dilation))
            return;
        for (int i = 3 - problem.rank, at = 0; i < 3; ++i) padding[at++] = static_cast<int>(problem.padding[i]);
        const cudnnTensorFormat_t format = problem.channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
        if (cudnnSetTensorNdDescriptorEx(input_.get(), format, kind.data, ndim, input) != CUDNN_STATUS_SUCCESS ||
            cudnnSetTensorNdDescriptorEx(output_.get(), format, kind.data, ndim, output) != CUDNN_STATUS_SUCCESS ||
            cudnnSetFilterNdDescriptor(filters_.get(), kind.data, format, ndim, filters) != CUDNN_STATUS_SUCCESS ||
            cudnnSetConvolutionNdDescriptor(convolution_.get(), problem.rank, padding, stride, dilation,
                                            CUDNN_CROSS_CORRELATION, kind.compute) != CUDNN_STATUS_SUCCESS ||
            cudnnSetConvolutionGroupCount(convolution_.get(), static_cast<int>(problem.groups)) !=
                CUDNN_STATUS_SUCCESS ||
            cudnnSetConvolutionMathType(convolution_.get(), kind.math) != CUDNN_STATUS_SUCCESS)
            return;
        wide_ = kind.data == CUDNN_DATA_DOUBLE;
        few_ = !problem.channels_last && problem.filters[0] <= kFewFilters;
        select_algorithm(handle, kind);
    }

    bool is_runnable() const override { return runs_; }

    void execute(cudnnHandle_t handle, const void* first, const void* second, const void*, void* result,
                 const Workspace& workspace) const override {
        static constexpr float kScales[2] = {1, 0};
        static constexpr double kWideScales[2] = {1, 0};
        const void* one = wide_ ? static_cast<const void*>(&kWideScales[0]) : &kScales[0];
        const void* kept = wide_ ? static_cast<const void*>(&kWideScales[1]) : &kScales[1];
        void* const room = bytes_ == 0 ? nullptr : workspace(static_cast<int64_t>(bytes_));
        cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
        switch (step_) {
            case ConvolutionStep::kForward:
                status = cudnnConvolutionForward(handle, one, input_.get(), first, filters_.get(), second,
                                                 convolution_.get(), static_cast<cudnnConvolutionFwdAlgo_t>(algorithm_),
                                                 room, bytes_, kept, output_.get(), result);
                break;
            case ConvolutionStep::kBackwardInput:
                status = cudnnConvolutionBackwardData(
                    handle, one, filters_.get(), second, output_.get(), first, convolution_.get(),
                    static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm_), room, bytes_, kept, input_.get(), result);
                break;
            case ConvolutionStep::kBackwardWeight:
                status = cudnnConvolutionBackwardFilter(handle, one, input_.get(), second, output_.get(), first,
                                                        convolution_.get(),
                                                        static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm_), room,
                                                        bytes_, kept, filters_.get(), result);
                break;
        }
        check_cudnn(status, "a convolution failed");
    }

private:
    // Sums in any order are barred. For the weight's gradient of so few filters, the heuristics go on with a kernel that takes
    // 1.5 to 5 times as long as one by Fourier transforms, on an H200.
    static constexpr int64_t kFewFilters = 4;

    void select_algorithm(cudnnHandle_t handle, const Kind& kind) {
        switch (step_) {
            case ConvolutionStep::kForward:
                return select_among<cudnnConvolutionFwdAlgoPerf_t>(
                    kind, CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, CUDNN_CONVOLUTION_FWD_ALGO_COUNT,
                    [&](int count, int* found, auto* list) {
                        return cudnnGetConvolutionForwardAlgorithm_v7(handle, input_.get(), filters_.get(),
                                                                      convolution_.get(), output_.get(), count, found,
                                                                      list);
                    });
            case ConvolutionStep::kBackwardInput:
                return select_among<cudnnConvolutionBwdDataAlgoPerf_t>(
                    kind, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT,
                    [&](int count, int* found, auto* list) {
                        return cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, filters_.get(), output_.get(),
                                                                           convolution_.get(), input_.get(), count,
                                                                           found, list);
                    });
            case ConvolutionStep::kBackwardWeight:
                return select_among<cudnnConvolutionBwdFilterAlgoPerf_t>(
                    kind, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
                    few_ ? CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT : CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT,
                    [&](int count, int* found, auto* list) {
                        return cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, input_.get(), output_.get(),
                                                                             convolution_.get(), filters_.get(), count,
                                                                             found, list);
                    });
        }
    }

    // The first that gives the same bits in every run, without shortened factors, in a workspace that is affordable.
    // Behind `last`, sums are of transformed tensors: halves lose too much there. What is `favoured` comes first.
    template <class Performance, class Algorithm, class Ask>
    void select_among(const Kind& kind, Algorithm last, Algorithm favoured, Ask&& ask) {
        constexpr int kMost = 16;
        constexpr size_t kMostBytes = size_t{1} << 30;
        Performance list[kMost];
        int found = 0;
        if (ask(kMost, &found, list) != CUDNN_STATUS_SUCCESS) return;
        std::stable_partition(list, list + found, [&](const Performance& one) { return one.algo == favoured; });
        for (int i = 0; i < found; ++i) {
            const Performance& one = list[i];
            if (one.status != CUDNN_STATUS_SUCCESS || one.determinism != CUDNN_DETERMINISTIC) continue;
            const bool shortens = kind.math == CUDNN_FMA_MATH && one.mathType == CUDNN_TENSOR_OP_MATH;
            if (one.memory > kMostBytes || shortens || (kind.halves && one.algo > last)) continue;
            const cudnnMathType_t own = kind.math == CUDNN_FMA_MATH ? kind.math : one.mathType;
            if (cudnnSetConvolutionMathType(convolution_.get(), own) != CUDNN_STATUS_SUCCESS) continue;
            algorithm_ = static_cast<int>(one.algo);
            bytes_ = one.memory;
            runs_ = true;
            return;
        }
    }

    ConvolutionStep step_;
    TensorDescriptor input_, output_;
    Descriptor<cudnnFilterDescriptor_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor> filters_;
    Descriptor<cudnnConvolutionDescriptor_t, cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor>
        convolution_;
    int algorithm_ = 0;
    size_t bytes_ = 0;
    bool wide_ = false;
    bool few_ = false;
    bool runs_ = false;
};

// None where cuDNN is not asked.
std::unique_ptr<const ConvolutionPlan> made_plan(cudnnHandle_t handle, const LibraryConvolution& problem) {
#if defined(DIOPI_CUDA_HAS_FRONTEND)
    if (auto plan = graph_plan(handle, problem)) return plan;
#endif
    if (is_depthwise(problem) || problem.biased) return nullptr;
    return std::make_unique<const Plan>(handle, problem);
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

const ConvolutionPlan* plan_of(const LibraryConvolution& problem) {
    const cudnnHandle_t handle = cudnn();  // made before the plans, so that it outlives them
    thread_local ByDevice<PlanCache<Key, ConvolutionPlan>> plans;
    return plans.current().cached(plan_key(problem), [&] { return made_plan(handle, problem); });
}

}  // namespace

bool has_convolution(const LibraryConvolution& problem) {
    const ConvolutionPlan* plan = plan_of(problem);
    return plan != nullptr && plan->is_runnable();
}

diopiError_t convolve(diopiStreamHandle_t stream, const LibraryConvolution& problem, const void* first,
                      const void* second, const void* bias, void* result, const Workspace& workspace) {
    return kernels::guarded([&] {
        plan_of(problem)->execute(cudnn_on(static_cast<cudaStream_t>(stream)), first, second, bias, result, workspace);
    });
}

}  // namespace diopi::launch

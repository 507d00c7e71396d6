// Pointwise: the part of an elementwise launch that does not depend on the expression, so that it compiles once.
//
// The expression itself is a loop over contiguous elements of the compute type. On a host any layouts and dtypes are
// walked in chunks that stay in the first-level cache: operands that are not such runs are converted into buffers.
#pragma once

#include <initializer_list>

#include "promotion.h"

namespace diopi::kernels {

constexpr int kMaxInputs = 5;

// A tensor, or a number, which may not be null; a count or a flag says nothing about the dtype of the result.
struct ElementwiseArgument {
    enum class Kind { tensor, number, count } kind;
    bool null = false;
    diopiConstTensorHandle_t tensor = nullptr;
    diopiScalar_t scalar{};

    ElementwiseArgument(diopiConstTensorHandle_t handle)
        : kind(Kind::tensor),
          null(handle == nullptr),
          tensor(handle) {}
    ElementwiseArgument(const diopiScalar_t* given)
        : kind(Kind::number),
          null(given == nullptr),
          scalar(null ? integer_scalar(0) : *given) {}
    ElementwiseArgument(double value) : kind(Kind::number), scalar(float_scalar(value)) {}
    ElementwiseArgument(int64_t value) : kind(Kind::count), scalar(integer_scalar(value)) {}
    ElementwiseArgument(bool value) : kind(Kind::count), scalar(integer_scalar(value ? 1 : 0, diopi_dtype_bool)) {}
};

// What a launch reads of its arguments.
struct ElementwiseCall {
    int tensors = 0, scalars = 0;
    TensorView views[kMaxInputs + 1];  // the output's first, then the inputs'
    diopiScalar_t values[kMaxInputs];
    ResultType result_type;

    ElementwiseCall(diopiTensorHandle_t out, std::initializer_list<ElementwiseArgument> arguments);

    // The inputs are of dtype `in`, the output of dtype `out`.
    bool typed(diopiDtype_t in, diopiDtype_t out) const {
        bool same = views[0].dtype == out;
        for (int i = 1; i <= tensors; ++i) same = same && views[i].dtype == in;
        return same;
    }
};

// An expression in one type: a launch, or for host code, as for chips that are simulated, a loop:
// out[i] = expression(inputs[0][i], ..., constants) for i in [first, first + count). Each constant is a value of that
// type in a slot of eight bytes.
#if defined(__CUDACC__)
using ExpressionCode = diopiError_t (*)(diopiStreamHandle_t stream, const ElementwiseCall& call);
#else
using ExpressionCode = void (*)(const void* const* inputs, const double* constants, void* out, int64_t first,
                                int64_t count);
#endif

struct ExpressionForm {
    diopiDtype_t compute;  // of the inputs
    diopiDtype_t result;
    ExpressionCode code;
};
constexpr ExpressionForm kNoForm{diopi_dtype_unsupported, diopi_dtype_unsupported, nullptr};  // behind the last one

// Runs the form for the dtype that the rule gives; what is large runs in parts.
diopiError_t launch_elementwise(Context ctx, Tensor out, std::initializer_list<ElementwiseArgument> arguments,
                                Compute rule, const ExpressionForm* forms);

// Host code: the same for a form without constants. `views` is the output, then `inputs` tensors.
diopiError_t launch_pointwise(diopiStreamHandle_t stream, const ExpressionForm& form, const TensorView* views,
                              int inputs, const double* constants = nullptr);

}  // namespace diopi::kernels

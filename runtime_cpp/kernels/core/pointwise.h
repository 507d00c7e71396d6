// Pointwise: the part of an elementwise launch that does not depend on the expression, so that it compiles once.
//
// The expression itself is a loop over contiguous elements of the compute type. Pointwise walks any layouts and dtypes
// in chunks that stay in the first-level cache: it converts operands into buffers where they are not such runs already.
#ifndef DIOPI_KERNELS_CORE_POINTWISE_H_
#define DIOPI_KERNELS_CORE_POINTWISE_H_

#include "convert.h"
#include "index.h"

namespace diopi::kernels {

constexpr int kMaxInputs = 5;

// out[i] = expression(inputs[0][i], ..., constants) for i in [first, first + count).
using ExpressionLoop = void (*)(const void* const* inputs, const double* constants, void* out, int64_t first,
                                int64_t count);

// Operands that are all contiguous, of one shape and of the compute type: the usual case, and the cheapest to launch.
struct DenseExpression {
    ExpressionLoop loop;
    int64_t count;
    const void* inputs[kMaxInputs];
    void* out;
    double constants[kMaxInputs];  // slots of eight bytes, each holding a value of the compute type
};

struct Pointwise {
    struct Operand {
        void* data;
        ConvertRun convert;   // between the operand's dtype and the expression's; null when they are the same
        int32_t size;         // bytes of an element in memory
        int32_t buffer_size;  // bytes of an element in the expression
    };

    ExpressionLoop loop;
    int32_t inputs;
    Operand operands[kMaxInputs + 1];  // the output first
    Space<kMaxInputs + 1> space;
    double constants[kMaxInputs];
};

// Fills all but `loop` and `constants`: `views` is the output, then `inputs` tensors; `compute` is the dtype of the
// expression's inputs, `result` the dtype of what it gives.
void plan_pointwise(Pointwise& plan, const TensorView* views, int inputs, diopiDtype_t compute, diopiDtype_t result);

// Host code, as the loops are: for chips that are simulated. What is large runs in parts.
diopiError_t launch_dense(diopiStreamHandle_t stream, const DenseExpression& expression);
diopiError_t launch_pointwise(diopiStreamHandle_t stream, const Pointwise& plan);

}  // namespace diopi::kernels

#endif  // DIOPI_KERNELS_CORE_POINTWISE_H_

// The dtype in which an elementwise expression computes: torch's result type, joined with what the output can hold.
#pragma once

#include "core/dtype.h"
#include "core/scalar.h"
#include "core/tensor.h"

namespace diopi::kernels {

// `promote`: integers stay integers. `floating`: integers and bool become the output's float dtype, or float32.
enum class Compute { promote, floating };

// Tensors with dimensions outrank 0-d tensors, which outrank scalars: a lower rank counts only if its category is
// higher.
class ResultType {
public:
    void add(const TensorView& tensor) { raise(tensor.ndim > 0 ? tensors_ : zero_dims_, tensor.dtype); }
    void add(const diopiScalar_t& scalar) {
        if (is_complex_dtype(scalar.stype)) fail_dtype(scalar.stype);
        raise(scalars_, is_float_scalar(scalar)            ? diopi_dtype_float32
                        : scalar.stype == diopi_dtype_bool ? diopi_dtype_bool
                                                           : diopi_dtype_int64);
    }

    diopiDtype_t dtype() const { return combined(tensors_, combined(zero_dims_, scalars_)); }

    // Half types compute in float32. Between integers, scalars are integers, too.
    diopiDtype_t compute_dtype(Compute rule, diopiDtype_t out) const {
        const diopiDtype_t given = combined(tensors_, zero_dims_);
        const bool whole = is_in<Integer>(given) && is_in<Integer>(out) && out != diopi_dtype_bool;
        diopiDtype_t common = whole ? given : dtype();
        if (rule == Compute::floating && !is_float_dtype(common))
            common = is_float_dtype(out) ? out : diopi_dtype_float32;
        if (out != diopi_dtype_bool) common = promote(common, out);
        const bool half = common == diopi_dtype_float16 || common == diopi_dtype_bfloat16;
        return half ? diopi_dtype_float32 : common;
    }

private:
    static constexpr diopiDtype_t kNone = diopi_dtype_unsupported;

    static void raise(diopiDtype_t& rank, diopiDtype_t dtype) {
        if (rank != dtype) rank = rank == kNone ? dtype : promote(rank, dtype);
    }

    static diopiDtype_t combined(diopiDtype_t higher, diopiDtype_t lower) {
        if (higher == kNone) return lower;
        if (lower == kNone || is_float_dtype(higher)) return higher;
        return higher == diopi_dtype_bool || is_float_dtype(lower) ? promote(higher, lower) : higher;
    }

    diopiDtype_t tensors_ = kNone;
    diopiDtype_t zero_dims_ = kNone;
    diopiDtype_t scalars_ = kNone;
};

}  // namespace diopi::kernels

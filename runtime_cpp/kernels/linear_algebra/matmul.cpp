// Matrix operators: mm, bmm, addmm, baddbmm, matmul and linear, with the backward forms of the last two.
#include <diopi/diopirt.h>

#include "copy/copy.h"
#include "core/scalar.h"
#include "core/view.h"
#include "matrix.h"
#include "reduction/reductions.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// out = beta * input + alpha * a b. A beta of zero means that input is not read: it may hold NaN.
void add_product(Context ctx, const TensorView& out, const TensorView& input, const TensorView& a, const TensorView& b,
                 double beta, double alpha) {
    if (input.ndim == 1 && beta == 1 && alpha == 1) return multiply_and_add(ctx, out, a, b, input);
    if (beta != 0) copy_elements(ctx, out, input);
    multiply(ctx, out, a, b, alpha, beta);
}

// A row vector on the left and a column vector on the right, as torch.matmul reads tensors of one dimension.
TensorView left_matrix(const TensorView& tensor) { return tensor.ndim == 1 ? with_dim(tensor, 0, 1, 0) : tensor; }
TensorView right_matrix(const TensorView& tensor) { return tensor.ndim == 1 ? with_dim(tensor, 1, 1, 0) : tensor; }

TensorView product_matrix(TensorView out, const TensorView& input, const TensorView& other) {
    if (input.ndim == 1) out = with_dim(out, other.ndim == 1 ? 0 : out.ndim - 1, 1, 0);
    if (other.ndim == 1) out = with_dim(out, out.ndim, 1, 0);
    return out;
}

void matmul(Context ctx, const TensorView& out, const TensorView& input, const TensorView& other) {
    require(input.ndim > 0 && other.ndim > 0, "both arguments of matmul need at least one dimension");
    const TensorView left = left_matrix(input), right = right_matrix(other);
    const TensorView target = product_matrix(out, input, other);
    // One matrix on the right serves every batch: a single, larger product.
    if (right.ndim == 2 && left.ndim > 2 && joins(target, 0, target.ndim - 2)) {
        multiply(ctx, joined(target, 0, target.ndim - 2), as_rows(ctx, left), right, 1, 0);
    } else {
        multiply(ctx, target, left, right, 1, 0);
    }
}

void matmul_backward(Context ctx, const TensorView& grad_input, const TensorView& grad_other,
                     const TensorView& grad_out, const TensorView& input, const TensorView& other) {
    const TensorView left = left_matrix(input), right = right_matrix(other);
    const TensorView grad = product_matrix(grad_out, input, other);
    if (grad_input) multiply_and_reduce(ctx, left_matrix(grad_input), grad, matrix_transposed(right));
    if (!grad_other) return;
    if (right.ndim == 2 && left.ndim > 2) {
        multiply(ctx, right_matrix(grad_other), matrix_transposed(as_rows(ctx, left)), as_rows(ctx, grad), 1, 0);
    } else {
        multiply_and_reduce(ctx, right_matrix(grad_other), matrix_transposed(left), grad);
    }
}

void linear(Context ctx, const TensorView& out, const TensorView& input, const TensorView& weight,
            const TensorView& bias) {
    TensorView target = out.ndim == 1 ? with_dim(out, 0, 1, out.sizes[0]) : out;
    TensorView rows = input;
    if (joins(target, 0, target.ndim - 2)) {
        target = joined(target, 0, target.ndim - 2);
        rows = as_rows(ctx, input);
    }
    if (bias && bias.ndim == 1) return multiply_and_add(ctx, target, rows, matrix_transposed(weight), bias);
    if (bias) copy_elements(ctx, out, bias);
    multiply(ctx, target, rows, matrix_transposed(weight), 1, bias ? 1 : 0);
}

}  // namespace

diopiError_t diopiMm(Context ctx, Tensor out, ConstTensor input, ConstTensor mat2) {
    return guarded([&] {
        multiply(ctx, required_view(out, "out"), required_view(input, "input"), required_view(mat2, "mat2"), 1, 0);
    });
}

diopiError_t diopiBmm(Context ctx, Tensor out, ConstTensor input, ConstTensor mat2) {
    return portable::diopiMm(ctx, out, input, mat2);
}

diopiError_t diopiAddmm(Context ctx, Tensor out, ConstTensor input, ConstTensor mat1, ConstTensor mat2,
                        const diopiScalar_t* beta, const diopiScalar_t* alpha) {
    return guarded([&] {
        add_product(ctx, required_view(out, "out"), required_view(input, "input"), required_view(mat1, "mat1"),
                    required_view(mat2, "mat2"), scalar_or<double>(beta, 1), scalar_or<double>(alpha, 1));
    });
}

diopiError_t diopiBaddbmm(Context ctx, Tensor out, ConstTensor input, ConstTensor batch1, ConstTensor batch2,
                          double beta, double alpha) {
    return guarded([&] {
        add_product(ctx, required_view(out, "out"), required_view(input, "input"), required_view(batch1, "batch1"),
                    required_view(batch2, "batch2"), beta, alpha);
    });
}

diopiError_t diopiBaddbmmInp(Context ctx, Tensor input, ConstTensor batch1, ConstTensor batch2, double beta,
                             double alpha) {
    return portable::diopiBaddbmm(ctx, input, input, batch1, batch2, beta, alpha);
}

diopiError_t diopiMatmul(Context ctx, Tensor out, ConstTensor input, ConstTensor other) {
    return guarded(
        [&] { matmul(ctx, required_view(out, "out"), required_view(input, "input"), required_view(other, "other")); });
}

diopiError_t diopiMatmulBackward(Context ctx, Tensor grad_input, Tensor grad_other, ConstTensor grad_out,
                                 ConstTensor input, ConstTensor other) {
    return guarded([&] {
        matmul_backward(ctx, view(grad_input), view(grad_other), required_view(grad_out, "grad_out"),
                        required_view(input, "input"), required_view(other, "other"));
    });
}

diopiError_t diopiLinear(Context ctx, Tensor out, ConstTensor input, ConstTensor weight, ConstTensor bias) {
    return guarded([&] {
        linear(ctx, required_view(out, "out"), required_view(input, "input"), required_view(weight, "weight"),
               view(bias));
    });
}

diopiError_t diopiLinearBackward(Context ctx, Tensor grad_input, Tensor grad_weight, Tensor grad_bias,
                                 ConstTensor grad_output, ConstTensor input, ConstTensor weight) {
    return guarded([&] {
        const TensorView grad = as_rows(ctx, required_view(grad_output, "grad_output"));
        const TensorView rows = as_rows(ctx, required_view(input, "input"));
        if (grad_input != nullptr)
            linear(ctx, view(grad_input), view(grad_output), matrix_transposed(required_view(weight, "weight")),
                   undefined_view());
        const TensorView factors = view(grad_weight), sums = view(grad_bias);
        if (factors && sums && sums.ndim == 1)
            return multiply_and_sum(ctx, factors, sums, matrix_transposed(grad), rows);
        if (factors) multiply(ctx, factors, matrix_transposed(grad), rows, 1, 0);
        if (sums) sums.ndim == 1 ? sum_around(ctx, sums, grad, 1) : sum_where_broadcast(ctx, sums, view(grad_output));
    });
}

}  // namespace impl::portable

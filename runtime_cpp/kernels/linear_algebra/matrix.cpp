// Matrix products of views: operands that a matrix library can step through are passed as they are, the others are
// copied.
#include "matrix.h"

#include <initializer_list>

#include "copy/copy.h"
#include "core/view.h"
#include "core/workspace.h"
#include "reduction/reductions.h"
#include "space/runs.h"

namespace diopi::kernels {
namespace {

// A row-major matrix whose rows do not overlap: the matrix library's leading dimension is the row stride.
bool row_major(const TensorView& matrix) {
    const int64_t rows = matrix.sizes[matrix.ndim - 2], columns = matrix.sizes[matrix.ndim - 1];
    const bool dense_rows = columns <= 1 || matrix.strides[matrix.ndim - 1] == 1;
    return dense_rows && (rows <= 1 || matrix.strides[matrix.ndim - 2] >= (columns > 1 ? columns : 1));
}

int64_t leading_dimension(const TensorView& matrix) {
    const int64_t columns = matrix.sizes[matrix.ndim - 1];
    return matrix.sizes[matrix.ndim - 2] <= 1 ? (columns > 1 ? columns : 1) : matrix.strides[matrix.ndim - 2];
}

bool library_can_read(const TensorView& matrix) { return row_major(matrix) || row_major(matrix_transposed(matrix)); }

TensorView readable(Context ctx, const TensorView& matrix, diopiDtype_t dtype) {
    return matrix.dtype == dtype && library_can_read(matrix) ? matrix : contiguous_as(ctx, matrix, dtype);
}

struct Matrix {
    const TensorView& view;
    bool is_transposed = !row_major(view);
    int64_t ld = leading_dimension(is_transposed ? matrix_transposed(view) : view);
    char* at(int64_t offset) const { return view.as<char>() + offset * element_size(view.dtype); }
};

#if defined(DIOPI_LAUNCHER_HAS_BIASED_PRODUCTS)
constexpr bool kAddsBias = true;
#else
constexpr bool kAddsBias = false;
#endif

// False where no library is asked for one product, with a bias or without, or with sums of a's rows.
bool multiply_once(Context ctx, const TensorView& out, const Matrix& a, const Matrix& b, const void* bias, void* sums) {
    [[maybe_unused]] const auto ask = [&](auto&& gemm, auto* vector) {
        const int64_t m = out.sizes[out.ndim - 2], n = out.sizes[out.ndim - 1], k = a.view.sizes[a.view.ndim - 1];
        return out.numel > 0 && k > 0 &&
               gemm(stream_of(ctx), out.dtype, a.is_transposed, b.is_transposed, m, n, k, a.view.data, a.ld,
                    b.view.data, b.ld, vector, out.data, leading_dimension(out),
                    [&](int64_t bytes) { return workspace(ctx, bytes); });
    };
#if defined(DIOPI_LAUNCHER_HAS_SUMMED_PRODUCTS)
    if (sums != nullptr) return ask(launch::gemm_with_sums, sums);
#endif
#if defined(DIOPI_LAUNCHER_HAS_BIASED_PRODUCTS)
    if (sums == nullptr) return ask(launch::gemm_with_bias, bias);
#endif
    static_cast<void>(bias), static_cast<void>(sums);
    return false;
}

// All three operands are of `out.dtype`, out is row-major, a and b either way.
void multiply_in_library(Context ctx, const TensorView& out, const TensorView& a, const TensorView& b, double alpha,
                         double beta) {
    const Matrix left{a};
    const Matrix right{b};
    const Matrix result{out};
    const int64_t m = out.sizes[out.ndim - 2], n = out.sizes[out.ndim - 1];
    const int64_t k = a.sizes[a.ndim - 1];
    const Space<3> batches = batches_of({out, a, b});
    if (batches.numel == 1 && alpha == 1 && beta == 0 && multiply_once(ctx, out, left, right, nullptr, nullptr)) return;
    const int64_t inner = batches.inner_size();
    for (int64_t first = 0; first < batches.numel; first += inner) {
        const Offsets<3> at = batches.offsets(first);
        check(launch::gemm(stream_of(ctx), out.dtype, left.is_transposed, right.is_transposed, m, n, k, alpha,
                           left.at(at[1]), left.ld, right.at(at[2]), right.ld, beta, result.at(at[0]), result.ld, inner,
                           batches.inner_stride(1), batches.inner_stride(2), batches.inner_stride(0)),
              "the matrix library refused a product");
    }
}

void multiply_floats(Context ctx, const TensorView& out, const TensorView& a, const TensorView& b, double alpha,
                     double beta) {
    // libraries may round a product of halves before they add it
    const bool kept = launch::kGemmTakesHalves && beta == 0;
    const diopiDtype_t dtype = kept ? out.dtype : product_dtype(out.dtype);
    const bool in_place = out.dtype == dtype && library_can_read(out);
    const TensorView target = in_place ? out : temporary_like(ctx, out, dtype);
    if (!in_place && beta != 0) copy_elements(ctx, target, out);
    const TensorView left = readable(ctx, a, dtype), right = readable(ctx, b, dtype);
    if (row_major(target)) {
        multiply_in_library(ctx, target, left, right, alpha, beta);
    } else {
        multiply_in_library(ctx, matrix_transposed(target), matrix_transposed(right), matrix_transposed(left), alpha,
                            beta);
    }
    if (!in_place) copy_elements(ctx, out, target);
}

struct Steps {
    int64_t row;
    int64_t column;
};

Steps steps_of(const TensorView& matrix) { return {matrix.strides[matrix.ndim - 2], matrix.strides[matrix.ndim - 1]}; }

// Unsigned arithmetic wraps around; int64 would overflow.
template <class T>
void multiply_integers(diopiStreamHandle_t stream, const TensorView& out, const TensorView& a, const TensorView& b,
                       int64_t alpha, int64_t beta) {
    const Space<3> batches = batches_of({out, a, b});
    const Steps result = steps_of(out), left = steps_of(a), right = steps_of(b);
    const int64_t m = out.sizes[out.ndim - 2], n = out.sizes[out.ndim - 1];
    const int64_t k = a.sizes[a.ndim - 1];
    for_each_index(
        stream, out.numel, DIOPI_LAMBDA(int64_t i) {
            const int64_t matrix = i / (m * n), row = i / n % m;
            const int64_t column = i % n;
            const Offsets<3> at = batches.offsets(matrix);
            uint64_t sum = 0;
            for (int64_t p = 0; p < k; ++p) {
                const T x = a.as<T>()[at[1] + row * left.row + p * left.column];
                const T y = b.as<T>()[at[2] + p * right.row + column * right.column];
                sum += static_cast<uint64_t>(x) * static_cast<uint64_t>(y);
            }
            T& target = out.as<T>()[at[0] + row * result.row + column * result.column];
            const uint64_t kept = beta == 0 ? 0 : static_cast<uint64_t>(beta) * static_cast<uint64_t>(target);
            target = static_cast<T>(static_cast<uint64_t>(alpha) * sum + kept);
        });
}

template <class T>
void scale(diopiStreamHandle_t stream, const TensorView& out, double factor) {
    const Space<1> space = space_of(out);
    for_each_index(
        stream, space.numel, DIOPI_LAMBDA(int64_t i) {
            T& target = out.as<T>()[space.offset(i)];
            target = cast<T>(cast<double>(target) * factor);
        });
}

void require_factors(const TensorView& out, const TensorView& a, const TensorView& b) {
    require(a.ndim >= 2 && b.ndim >= 2 && out.ndim >= 2, "a matrix product needs matrices, got %d and %d dimensions",
            a.ndim, b.ndim);
    const int64_t m = a.sizes[a.ndim - 2], k = a.sizes[a.ndim - 1], inner = b.sizes[b.ndim - 2],
                  n = b.sizes[b.ndim - 1];
    require(k == inner, "matrices of %lld columns and %lld rows cannot be multiplied", k, inner);
    require(out.sizes[out.ndim - 2] == m && out.sizes[out.ndim - 1] == n,
            "the result of a matrix product has the shape %lld by %lld", m, n);
}

}  // namespace

diopiDtype_t product_dtype(diopiDtype_t dtype) {
    return dtype == diopi_dtype_float64 ? diopi_dtype_float64 : diopi_dtype_float32;
}

void multiply(Context ctx, const TensorView& out, const TensorView& a, const TensorView& b, double alpha, double beta) {
    require_factors(out, a, b);
    const int64_t k = a.sizes[a.ndim - 1];
    if (out.numel == 0) return;
    if (is_float_dtype(out.dtype)) {
        if (k > 0) return multiply_floats(ctx, out, a, b, alpha, beta);
        // An empty sum; the library is not asked, because its leading dimensions must not be zero.
        if (beta == 0) return fill_zero(ctx, out);
        return dispatch<Float>(out.dtype,
                               [&](auto type) { scale<typename decltype(type)::type>(stream_of(ctx), out, beta); });
    }
    using Integers = Types<int64_t, int32_t, int16_t, int8_t, uint8_t>;
    const TensorView left = converted(ctx, a, out.dtype), right = converted(ctx, b, out.dtype);
    dispatch<Integers>(out.dtype, [&](auto type) {
        multiply_integers<typename decltype(type)::type>(stream_of(ctx), out, left, right, static_cast<int64_t>(alpha),
                                                         static_cast<int64_t>(beta));
    });
}

void multiply_and_add(Context ctx, const TensorView& out, const TensorView& a, const TensorView& b,
                      const TensorView& bias) {
    require_factors(out, a, b);
    const bool plain = kAddsBias && out.ndim == 2 && row_major(out) && bias.contiguous();
    if (plain && is_float_dtype(out.dtype) && bias.dtype == out.dtype && bias.numel == out.sizes[1]) {
        const TensorView left = readable(ctx, a, out.dtype), right = readable(ctx, b, out.dtype);
        if (multiply_once(ctx, out, {left}, {right}, bias.data, nullptr)) return;
    }
    copy_elements(ctx, out, bias);
    multiply(ctx, out, a, b, 1, 1);
}

void multiply_and_sum(Context ctx, const TensorView& out, const TensorView& sums, const TensorView& a,
                      const TensorView& b) {
    require_factors(out, a, b);
    const auto is_plain = [&](const TensorView& t) { return t.dtype == out.dtype && library_can_read(t); };
    if (is_float_dtype(out.dtype) && row_major(out) && is_plain(a) && is_plain(b) && sums.dtype == out.dtype &&
        sums.contiguous() && multiply_once(ctx, out, {a}, {b}, nullptr, sums.data))
        return;
    multiply(ctx, out, a, b, 1, 0);
    sum_around(ctx, sums, matrix_transposed(a), 1);
}

void multiply_and_reduce(Context ctx, const TensorView& out, const TensorView& a, const TensorView& b) {
    const int ndim = a.ndim > b.ndim ? a.ndim : b.ndim;
    int64_t sizes[kMaxDims];  // the product's batches, with the dimensions that out lacks
    bool sums = false;
    Space<3> repeated;
    TensorView left = a, right = b, target = out;
    for (TensorView* operand : {&left, &right, &target}) {
        while (operand->ndim < ndim) *operand = with_dim(*operand, 0, 1, 0);
    }
    for (int d = 0; d < ndim - 2; ++d) {
        sizes[d] = left.sizes[d] == 1 ? right.sizes[d] : left.sizes[d];
        if (target.sizes[d] == sizes[d]) continue;
        sums = true;
        repeated.append(sizes[d],
                        {0, left.sizes[d] == 1 ? 0 : left.strides[d], right.sizes[d] == 1 ? 0 : right.strides[d]});
        left = narrowed(left, d, 0, 1);
        right = narrowed(right, d, 0, 1);
    }
    if (!sums) return multiply(ctx, target, left, right, 1, 0);
    const TensorView total = temporary_like(ctx, target, product_dtype(target.dtype));
    fill_zero(ctx, total);
    for (int64_t i = 0; i < repeated.numel; ++i) {
        const Offsets<3> at = repeated.offsets(i);
        multiply(ctx, total, shifted(left, at[1]), shifted(right, at[2]), 1, 1);
    }
    copy_elements(ctx, target, total);
}

void sum_around(Context ctx, const TensorView& sums, const TensorView& tensor, int dim) {
    require(sums.ndim == 1 && sums.sizes[0] == tensor.sizes[dim], "a sum for each of %lld positions has as many places",
            static_cast<long long>(tensor.sizes[dim]));
    if (!is_float_dtype(tensor.dtype)) fail_dtype(tensor.dtype);
    reduce_sum(ctx, sums, tensor, ~(DimSet{1} << dim));
}

}  // namespace diopi::kernels

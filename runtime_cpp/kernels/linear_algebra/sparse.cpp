// Products with sparse matrices, which the caller's framework keeps in compressed rows.
#include <diopi/diopirt.h>

#include "copy/copy.h"
#include "matrix.h"
#include "space/bounds.h"
#include "space/element.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

struct CompressedRows {
    TensorView starts;  // one more than there are rows
    TensorView columns, values;
};

CompressedRows compressed_rows(Context ctx, ConstTensor handle, int64_t rows, int64_t columns) {
    ConstTensor starts = nullptr, places = nullptr, values = nullptr;
    check(diopiGetTensorCrowIndices(handle, &starts), "a sparse tensor gives no row indices");
    check(diopiGetTensorColIndices(handle, &places), "a sparse tensor gives no column indices");
    check(diopiGetTensorValues(handle, &values), "a sparse tensor gives no values");
    const TensorView stored = required_view(values, "values");
    const CompressedRows result{sized_view(starts, "crow_indices", {rows + 1}),
                                sized_view(places, "col_indices", {stored.numel}), stored};
    require_sizes(stored, "values", {stored.numel});
    require_in_bounds(ctx, result.columns, columns, 1, Negative::refused);
    return result;
}

template <class T>
struct SparseProductTask {
    CompressedRows left;
    TensorView out, right;

    DIOPI_HD void operator()(int64_t i) const {
        using A = AccumulateType<T>;
        const int64_t row = i / out.sizes[1], column = i % out.sizes[1];
        const auto end = number_at<int64_t>(left.starts, row + 1);
        A sum = 0;
        for (auto p = number_at<int64_t>(left.starts, row); p < end; ++p) {
            const auto k = number_at<int64_t>(left.columns, p);
            sum += cast<A>(element<T>(left.values, p)) * cast<A>(element<T>(right, k, column));
        }
        element<T>(out, row, column) = cast<T>(sum);
    }
};

}  // namespace

diopiError_t diopiSpMM(Context ctx, Tensor out, ConstTensor input, ConstTensor mat2) {
    return guarded([&] {
        bool sparse[2];
        require(input != nullptr && mat2 != nullptr, "a factor of a product is null");
        for (int k = 0; k < 2; ++k)
            check(diopiIsTensorSparse(k == 0 ? input : mat2, &sparse[k]), "a tensor hides whether it is sparse");
        if (sparse[1]) fail(diopiNoImplement, "products with a sparse 'mat2' are not implemented");
        const TensorView result = required_view(out, "out"), right = required_view(mat2, "mat2");
        if (!sparse[0]) return multiply(ctx, result, required_view(input, "input"), right, 1, 0);
        Sizes sizes{};
        check(diopiGetTensorShape(input, &sizes), "a tensor gives no shape");
        require(sizes.len == 2, "a sparse matrix has two dimensions, not %lld", sizes.len);
        const CompressedRows left = compressed_rows(ctx, input, sizes.data[0], sizes.data[1]);
        require_sizes(right, "mat2", {sizes.data[1], result.sizes[1]});
        require_sizes(result, "out", {sizes.data[0], right.sizes[1]});
        require_dtype(left.values, result.dtype);
        require_dtype(right, result.dtype);
        for_each_typed<Float, SparseProductTask>(ctx, result.dtype, result.numel, left, result, right);
    });
}

}  // namespace impl::portable

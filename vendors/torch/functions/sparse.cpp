// Products with sparse matrices, which the caller's framework keeps in compressed rows.
#include <ATen/ops/matmul.h>
#include <ATen/ops/sparse_csr_tensor.h>
#include <diopi/functions_sparse.h>

#include "aten/call.h"

namespace impl::torch {

using namespace diopi::aten;

namespace {

at::Tensor compressed_rows(diopiConstTensorHandle_t handle) {
    diopiConstTensorHandle_t rows = nullptr;
    diopiConstTensorHandle_t columns = nullptr;
    diopiConstTensorHandle_t values = nullptr;
    diopiSize_t sizes{};
    check(diopiGetTensorCrowIndices(handle, &rows), "a sparse tensor gives no row indices");
    check(diopiGetTensorColIndices(handle, &columns), "a sparse tensor gives no column indices");
    check(diopiGetTensorValues(handle, &values), "a sparse tensor gives no values");
    check(diopiGetTensorShape(handle, &sizes), "a tensor gives no sizes");
    const at::Tensor stored = tensor(values);
    return at::sparse_csr_tensor(tensor(rows), tensor(columns), stored, ints(sizes),
                                 stored.options().layout(at::kSparseCsr));
}

bool is_sparse(diopiConstTensorHandle_t handle) {
    bool sparse = false;
    check(diopiIsTensorSparse(handle, &sparse), "a tensor does not tell whether it is sparse");
    return sparse;
}

}  // namespace

diopiError_t diopiSpMM(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                       diopiConstTensorHandle_t mat2) {
    return guarded([&] {
        if (is_sparse(mat2)) refuse("products with a sparse second matrix");
        write(out, at::matmul(is_sparse(input) ? compressed_rows(input) : tensor(input), tensor(mat2)));
    });
}

}  // namespace impl::torch

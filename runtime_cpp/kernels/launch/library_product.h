// Matrix products with a bias or with sums by a vendor's library, for launchers that define
// DIOPI_LAUNCHER_HAS_BIASED_PRODUCTS or DIOPI_LAUNCHER_HAS_SUMMED_PRODUCTS.
#pragma once

#include <diopi/diopirt.h>

#include <cstdint>
#include <functional>

namespace diopi::launch {

using Workspace = std::function<void*(int64_t)>;  // gives so many bytes of device memory

// c = op(a) op(b) + bias, row-major, with a bias for each column, or null, that is added before the result is rounded.
// False where the library has no kernel for it: then c is as before.
bool gemm_with_bias(diopiStreamHandle_t stream, diopiDtype_t dtype, bool trans_a, bool trans_b, int64_t m, int64_t n,
                    int64_t k, const void* a, int64_t lda, const void* b, int64_t ldb, const void* bias, void* c,
                    int64_t ldc, const Workspace& workspace);

// c = op(a) op(b), and sums[i] = the sum of row i of op(a): the gradients of a linear layer's weight and bias. False as
// above.
bool gemm_with_sums(diopiStreamHandle_t stream, diopiDtype_t dtype, bool trans_a, bool trans_b, int64_t m, int64_t n,
                    int64_t k, const void* a, int64_t lda, const void* b, int64_t ldb, void* sums, void* c, int64_t ldc,
                    const Workspace& workspace);

}  // namespace diopi::launch

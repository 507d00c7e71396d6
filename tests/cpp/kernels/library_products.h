// A launcher of plain loops that has products of bfloat16 with a bias, or with sums, by a library.
#pragma once

// clang-format off
#include "launch/host.h"
#include "launch/library_product.h"
// clang-format on

#include "core/half.h"

#define DIOPI_LAUNCHER_HAS_BIASED_PRODUCTS
#define DIOPI_LAUNCHER_HAS_SUMMED_PRODUCTS

namespace diopi::launch {

inline int product_calls[2];  // with a bias or without, with sums

// What the tests ask.
extern "C" __attribute__((used, visibility("default"))) inline int library_product_calls(int kind) {
    return product_calls[kind];
}

namespace detail {

struct LibraryProduct {
    bool trans_a, trans_b;
    int64_t m, n, k;
    const void* a;
    int64_t lda;
    const void* b;
    int64_t ldb;
    void* c;
    int64_t ldc;

    static float at(const void* data, int64_t place) {
        return static_cast<float>(static_cast<const kernels::BFloat16*>(data)[place]);
    }
    float left(int64_t i, int64_t p) const { return at(a, trans_a ? p * lda + i : i * lda + p); }
    float right(int64_t p, int64_t j) const { return at(b, trans_b ? j * ldb + p : p * ldb + j); }

    void multiply(const void* bias) const {
        for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) {
                float sum = bias == nullptr ? 0 : at(bias, j);
                for (int64_t p = 0; p < k; ++p) sum += left(i, p) * right(p, j);
                static_cast<kernels::BFloat16*>(c)[i * ldc + j] = kernels::BFloat16(sum);
            }
    }
};

}  // namespace detail

inline bool gemm_with_bias(diopiStreamHandle_t, diopiDtype_t dtype, bool trans_a, bool trans_b, int64_t m, int64_t n,
                           int64_t k, const void* a, int64_t lda, const void* b, int64_t ldb, const void* bias, void* c,
                           int64_t ldc, const Workspace&) {
    if (dtype != diopi_dtype_bfloat16) return false;
    ++product_calls[0];
    detail::LibraryProduct{trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc}.multiply(bias);
    return true;
}

inline bool gemm_with_sums(diopiStreamHandle_t, diopiDtype_t dtype, bool trans_a, bool trans_b, int64_t m, int64_t n,
                           int64_t k, const void* a, int64_t lda, const void* b, int64_t ldb, void* sums, void* c,
                           int64_t ldc, const Workspace&) {
    if (dtype != diopi_dtype_bfloat16) return false;
    ++product_calls[1];
    const detail::LibraryProduct product{trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc};
    product.multiply(nullptr);
    for (int64_t i = 0; i < m; ++i) {
        float sum = 0;
        for (int64_t p = 0; p < k; ++p) sum += product.left(i, p);
        static_cast<kernels::BFloat16*>(sums)[i] = kernels::BFloat16(sum);
    }
    return true;
}

}  // namespace diopi::launch

// Droplet's matrix products, by OpenBLAS.
#include <algorithm>

#include "core/error.h"
#include "launcher.h"
#include "openblas.h"

namespace diopi::launch {
namespace {

// Where a product is cut between threads. How OpenBLAS adds up depends on the shape it is given, so the blocks depend on
// the product alone, and never on the number of threads.
constexpr int64_t kMostBlocks = 8;
constexpr int64_t kLeastExtent = 512;  // packing the other factor for each block costs some hundredths then
constexpr int64_t kOperationsPerNanosecond = 16;

struct Gemm {
    bool double_precision;
    CBLAS_TRANSPOSE trans_a, trans_b;
    blasint m, n, k, lda, ldb, ldc;
    double alpha, beta;
    const void* a;
    const void* b;
    void* c;
    int64_t batch, stride_a, stride_b, stride_c;

    // Whole rows of c, or whole columns of a wide one.
    bool by_rows() const { return m >= n; }
    int64_t extent() const { return by_rows() ? m : n; }
    int64_t blocks() const { return std::clamp(extent() / kLeastExtent, int64_t{1}, kMostBlocks); }
    int64_t block() const { return (extent() + blocks() - 1) / blocks(); }

    static void run(const void* args) {
        const Gemm& gemm = *static_cast<const Gemm*>(args);
        const int64_t block = gemm.block() * std::min(gemm.m, gemm.n) * gemm.k;
        tangForRanges(gemm.batch * gemm.blocks(), 1 + 2 * block / kOperationsPerNanosecond, &range, args);
    }

    static void range(const void* args, int64_t begin, int64_t end) {
        const Gemm& gemm = *static_cast<const Gemm*>(args);
        for (int64_t i = begin; i < end; ++i) {
            if (gemm.double_precision) {
                gemm.multiply<double>(OPENBLAS(scipy_cblas_dgemm), i / gemm.blocks(), i % gemm.blocks());
            } else {
                gemm.multiply<float>(OPENBLAS(scipy_cblas_sgemm), i / gemm.blocks(), i % gemm.blocks());
            }
        }
    }

    template <class T, class Product>
    void multiply(Product product, int64_t matrix, int64_t part) const {
        const int64_t first = part * block();
        const auto count = static_cast<blasint>(std::min(block(), extent() - first));
        const int64_t row = by_rows() ? first : 0, column = by_rows() ? 0 : first;
        product(CblasRowMajor, trans_a, trans_b, by_rows() ? count : m, by_rows() ? n : count, k, static_cast<T>(alpha),
                static_cast<const T*>(a) + matrix * stride_a + (trans_a == CblasTrans ? row : row * lda), lda,
                static_cast<const T*>(b) + matrix * stride_b + (trans_b == CblasTrans ? column * ldb : column), ldb,
                static_cast<T>(beta), static_cast<T*>(c) + matrix * stride_c + row * ldc + column, ldc);
    }
};

// OpenBLAS wants a leading dimension even for a matrix of one row, where it means nothing.
blasint leading_dimension(int64_t rows, int64_t columns, int64_t given) {
    const int64_t least = std::max<int64_t>(columns, 1);
    if (rows <= 1) return extent(std::max(given, least));
    kernels::require(given >= least, "a matrix with %lld columns has its rows only %lld elements apart",
                     static_cast<long long>(columns), static_cast<long long>(given));
    return extent(given);
}

}  // namespace

diopiError_t gemm(diopiStreamHandle_t stream, diopiDtype_t dtype, bool trans_a, bool trans_b, int64_t m, int64_t n,
                  int64_t k, double alpha, const void* a, int64_t lda, const void* b, int64_t ldb, double beta, void* c,
                  int64_t ldc, int64_t batch, int64_t stride_a, int64_t stride_b, int64_t stride_c) {
    if (dtype != diopi_dtype_float32 && dtype != diopi_dtype_float64) return diopiDtypeNotSupported;
    if (m == 0 || n == 0 || batch == 0) return diopiSuccess;
    return kernels::guarded([&] {
        openblas();
        Gemm work{};
        work.double_precision = dtype == diopi_dtype_float64;
        work.trans_a = trans_a ? CblasTrans : CblasNoTrans;
        work.trans_b = trans_b ? CblasTrans : CblasNoTrans;
        work.m = extent(m);
        work.n = extent(n);
        work.k = extent(k);
        work.lda = trans_a ? leading_dimension(k, m, lda) : leading_dimension(m, k, lda);
        work.ldb = trans_b ? leading_dimension(n, k, ldb) : leading_dimension(k, n, ldb);
        work.ldc = leading_dimension(m, n, ldc);
        work.alpha = alpha;
        work.beta = beta;
        work.a = device_address(a);
        work.b = device_address(b);
        work.c = device_address(c);
        work.batch = batch;
        work.stride_a = stride_a;
        work.stride_b = stride_b;
        work.stride_c = stride_c;
        kernels::check(detail::launch(stream, work), "a matrix product failed on the device");
    });
}

}  // namespace diopi::launch

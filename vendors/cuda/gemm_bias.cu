// Single matrix products by cuBLASLt, which adds a bias before the result is rounded, or sums up a factor's rows beside it.
#include <cublasLt.h>
#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <memory>

#include "library_handles.h"
#include "core/error.h"
#include "core/launcher.h"
#include "gemm_kind.h"

namespace diopi::launch {
namespace {

using OwnedLayout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;

struct Problem {
    diopiDtype_t dtype;
    bool trans_a, trans_b;
    int64_t m, n, k, lda, ldb, ldc;
    int64_t alignment;  // of all pointers, in bytes
    cublasLtEpilogue_t epilogue;  // what becomes of a vector beside the product
    bool rounds = may_round(diopi_products);

    using Key = std::array<int64_t, 12>;
    Key key() const { return {dtype, trans_a, trans_b, m, n, k, lda, ldb, ldc, alignment, epilogue, rounds}; }
};

// A problem with what cuBLASLt wants to know about it. Row-major matrices are column-major ones transposed:
// c' = op(b)' op(a)' + bias.
class Plan {
public:
    Plan(cublasLtHandle_t handle, const Problem& p, const void* vector) {
        GemmKind kind{};
        if (!gemm_kind(p.dtype, &kind) || kind.data == CUDA_R_64F) return;
        // kernels for halves in odd places round the product before they add the bias
        const bool even = p.alignment % 16 == 0 && (p.n | p.k | p.lda | p.ldb | p.ldc) % 8 == 0;
        if (kind.data != CUDA_R_32F && !even) return;
        cublasLtMatmulDesc_t product = nullptr;
        if (!succeeded(cublasLtMatmulDescCreate(&product, kind.compute, CUDA_R_32F))) return;
        product_.reset(product);
        first_ = matrix_layout(kind.data, p.trans_b ? p.k : p.n, p.trans_b ? p.n : p.k, p.ldb);
        second_ = matrix_layout(kind.data, p.trans_a ? p.m : p.k, p.trans_a ? p.k : p.m, p.lda);
        result_ = matrix_layout(kind.data, p.n, p.m, p.ldc);
        if (first_ == nullptr || second_ == nullptr || result_ == nullptr) return;
        set_attribute(CUBLASLT_MATMUL_DESC_TRANSA, p.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N);
        set_attribute(CUBLASLT_MATMUL_DESC_TRANSB, p.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N);
        set_attribute(CUBLASLT_MATMUL_DESC_EPILOGUE, p.epilogue);
        if (vector != nullptr) set_attribute(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector);
        if (good_) pick_algorithm(handle, p);
    }

    bool has_kernel() const { return runs_; }

    cublasStatus_t launch_product(cublasLtHandle_t handle, cudaStream_t stream, const void* a, const void* b,
                                  const void* vector, void* c, const Workspace& workspace) const {
        const float one = 1, zero = 0;
        if (vector != nullptr) {
            const cublasStatus_t status = cublasLtMatmulDescSetAttribute(
                product_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, &vector, sizeof vector);
            if (!succeeded(status)) return status;
        }
        void* const room =
            chosen_.workspaceSize == 0 ? nullptr : workspace(static_cast<int64_t>(chosen_.workspaceSize));
        return cublasLtMatmul(handle, product_.get(), &one, b, first_.get(), a, second_.get(), &zero, c, result_.get(),
                              c, result_.get(), &chosen_.algo, room, chosen_.workspaceSize, stream);
    }

private:
    static bool succeeded(cublasStatus_t status) { return status == CUBLAS_STATUS_SUCCESS; }

    static OwnedLayout matrix_layout(cudaDataType_t type, int64_t rows, int64_t columns, int64_t ld) {
        cublasLtMatrixLayout_t made = nullptr;
        const bool is_made = succeeded(
            cublasLtMatrixLayoutCreate(&made, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), ld));
        return OwnedLayout(is_made ? made : nullptr);
    }

    template <class Value>
    void set_attribute(cublasLtMatmulDescAttributes_t attribute, Value value) {
        good_ = good_ && succeeded(cublasLtMatmulDescSetAttribute(product_.get(), attribute, &value, sizeof value));
    }

    // The library's first choice among kernels that sum up in float32 to the end.
    void pick_algorithm(cublasLtHandle_t handle, const Problem& p) {
        const auto alignment = static_cast<uint32_t>(p.alignment);
        cublasLtMatmulPreference_t made = nullptr;
        if (!succeeded(cublasLtMatmulPreferenceCreate(&made))) return;
        const Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> preference(made);
        const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
            return succeeded(cublasLtMatmulPreferenceSetAttribute(made, attribute, &value, sizeof value));
        };
        // with room for partial sums it takes many of them even where a product is short; kernels for TF32 want some
        const bool shortened = p.dtype == diopi_dtype_float32 && p.rounds;
        const uint64_t most_bytes = p.k < 2048 && !shortened ? 0 : uint64_t{32} << 20;
        constexpr uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
        int found = 0;
        runs_ = prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most_bytes) &&
                prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions) &&
                prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment) &&
                prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment) &&
                prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment) &&
                prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment) &&
                succeeded(cublasLtMatmulAlgoGetHeuristic(handle, product_.get(), first_.get(), second_.get(),
                                                         result_.get(), result_.get(), made, 1, &chosen_, &found)) &&
                found == 1 && succeeded(chosen_.state);
    }

    Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> product_;
    OwnedLayout first_, second_, result_;
    cublasLtMatmulHeuristicResult_t chosen_{};
    bool good_ = true;
    bool runs_ = false;
};

// A thread's library on one device, with the plans that it has made.
struct Library : LibraryHandle<cublasLtHandle_t, kCublasLt, cublasLtCreate, cublasLtDestroy>,
                 PlanCache<Problem::Key, Plan> {};

// The largest power of two up to 256 that divides all of the addresses.
int64_t alignment_of(std::initializer_list<const void*> pointers) {
    uintptr_t bits = 256;
    for (const void* pointer : pointers) bits |= reinterpret_cast<uintptr_t>(pointer);
    return static_cast<int64_t>(bits & (~bits + 1));
}

// `vector` is null, a bias, or where sums are left.
bool multiplied(diopiStreamHandle_t stream, Problem problem, const void* a, const void* b, const void* vector, void* c,
                const Workspace& workspace) {
    thread_local ByDevice<Library> libraries;
    Library& library = libraries.current();
    problem.alignment = alignment_of({a, b, vector, c});
    const auto make = [&] { return std::make_unique<const Plan>(library.get(), problem, vector); };
    const Plan* plan = library.cached(problem.key(), make);
    return plan->has_kernel() && plan->launch_product(library.get(), static_cast<cudaStream_t>(stream), a, b, vector, c,
                                                      workspace) == CUBLAS_STATUS_SUCCESS;
}

}  // namespace

bool gemm_with_bias(diopiStreamHandle_t stream, diopiDtype_t dtype, bool trans_a, bool trans_b, int64_t m, int64_t n,
                    int64_t k, const void* a, int64_t lda, const void* b, int64_t ldb, const void* bias, void* c,
                    int64_t ldc, const Workspace& workspace) {
    const cublasLtEpilogue_t epilogue = bias == nullptr ? CUBLASLT_EPILOGUE_DEFAULT : CUBLASLT_EPILOGUE_BIAS;
    return multiplied(stream, {dtype, trans_a, trans_b, m, n, k, lda, ldb, ldc, 0, epilogue}, a, b, bias, c, workspace);
}

bool gemm_with_sums(diopiStreamHandle_t stream, diopiDtype_t dtype, bool trans_a, bool trans_b, int64_t m, int64_t n,
                    int64_t k, const void* a, int64_t lda, const void* b, int64_t ldb, void* sums, void* c, int64_t ldc,
                    const Workspace& workspace) {
    constexpr cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BGRADB;  // a is the library's second factor
    return multiplied(stream, {dtype, trans_a, trans_b, m, n, k, lda, ldb, ldc, 0, epilogue}, a, b, sums, c, workspace);
}

}  // namespace diopi::launch

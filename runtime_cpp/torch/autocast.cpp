// Mixed precision: torch's own lists of operators per policy, for the device's autocast key.
#include "library.h"

#include <ATen/autocast_mode.h>

namespace dipu {
namespace {

// Its logarithms overflow in lower precision, and its input may already be; torch refuses it on CUDA likewise.
at::Tensor refuse_binary_cross_entropy(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                                       int64_t) {
    TORCH_CHECK(false,
                "binary_cross_entropy and BCELoss are unsafe under autocast; use binary_cross_entropy_with_logits or "
                "BCEWithLogitsLoss, which take the values before the sigmoid");
}

}  // namespace

void register_autocast() {
    // Without the fallthrough every operator that no list names would have no kernel under autocast.
    new_library("_", c10::DispatchKey::AutocastPrivateUse1).fallback(torch::CppFunction::makeFallthrough());

    torch::Library& m = new_library("aten", c10::DispatchKey::AutocastPrivateUse1);
    using namespace at;            // NOLINT: the lists spell types without it, not the same ones in every release
    using namespace at::autocast;  // NOLINT: and their policies
#define DIPU_LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define DIPU_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define DIPU_FP32_SET_OPT_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define DIPU_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
    AT_FORALL_LOWER_PRECISION_FP(DIPU_LOWER_PRECISION)
    AT_FORALL_FP32(DIPU_FP32)
    AT_FORALL_FP32_SET_OPT_DTYPE(DIPU_FP32_SET_OPT_DTYPE)
    AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
    AT_FORALL_PROMOTE(DIPU_PROMOTE)
    m.impl("binary_cross_entropy", &refuse_binary_cross_entropy);
#undef DIPU_LOWER_PRECISION
#undef DIPU_FP32
#undef DIPU_FP32_SET_OPT_DTYPE
#undef DIPU_PROMOTE
}

}  // namespace dipu

// The parts of a complex tensor are a real tensor with one dimension more, which the device copies.
#include "copy_parts.h"

#include <ATen/ops/any.h>
#include <ATen/ops/view_as_real.h>

namespace dipu {
namespace {

// The stored numbers, without what the lazy bits say of them.
at::Tensor stored(const at::Tensor& tensor) {
    at::Tensor plain =
        at::Tensor(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(/*version_counter=*/0,
                                                                         /*allow_tensor_metadata_change=*/true));
    plain._set_conj(false);
    plain._set_neg(false);
    return plain;
}

// Only the truth of a number is told by both parts.
void copy_complex(const at::Tensor& from, const at::Tensor& to) {
    if (!to.is_complex()) {
        const at::Tensor numbers = at::view_as_real(from);
        to.copy_(to.scalar_type() == at::kBool ? at::any(numbers, -1) : numbers.select(-1, 0));
        return;
    }
    const at::Tensor parts = at::view_as_real(to);
    if (from.is_complex()) {
        parts.copy_(at::view_as_real(from));
        return;
    }
    parts.select(-1, 0).copy_(from);
    parts.select(-1, 1).zero_();
}

}  // namespace

bool copy_by_parts(const at::Tensor& source, const at::Tensor& destination) {
    const bool conjugate = source.is_conj() != destination.is_conj();
    const bool negate = source.is_neg() != destination.is_neg();
    const bool complex = source.is_complex() || destination.is_complex();
    if (!complex && !negate) {
        return false;
    }
    const at::Tensor from = stored(source);
    const at::Tensor to = stored(destination);
    if (complex) {
        copy_complex(from, to);
    } else {
        to.copy_(from);
    }
    const at::Tensor numbers = to.is_complex() ? at::view_as_real(to) : to;
    if (conjugate && to.is_complex()) {
        numbers.select(-1, 1).neg_();
    }
    if (negate) {
        numbers.neg_();
    }
    return true;
}

}  // namespace dipu

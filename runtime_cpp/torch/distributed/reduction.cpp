// Chooses the dtype and operation of a reduction on the host, and converts values to and fro.
#include "reduction.h"

#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <c10/core/ScalarType.h>

namespace dipu::distributed {
namespace {

using Op = c10d::ReduceOp;

bool is_bitwise(Op::RedOpType op) { return op == Op::BAND || op == Op::BOR || op == Op::BXOR; }

bool is_linear(Op::RedOpType op) { return op == Op::SUM || op == Op::AVG || op == Op::PREMUL_SUM; }

const char* name_of(Op::RedOpType op) {
    switch (op) {
        case Op::SUM: return "SUM";
        case Op::AVG: return "AVG";
        case Op::PRODUCT: return "PRODUCT";
        case Op::MIN: return "MIN";
        case Op::MAX: return "MAX";
        case Op::BAND: return "BAND";
        case Op::BOR: return "BOR";
        case Op::BXOR: return "BXOR";
        case Op::PREMUL_SUM: return "PREMUL_SUM";
        case Op::UNUSED: return "UNUSED";
    }
    return "unknown";
}

// The dtype in which the host computes; one of those that Gloo reduces.
c10::ScalarType computing_dtype(Op::RedOpType op, c10::ScalarType dtype) {
    switch (dtype) {
        case c10::kBool:  // a sum of bools is whether one is true, not a byte of another value
        case c10::kShort:
        case c10::kUInt16: return c10::kInt;
        case c10::kUInt32: return c10::kLong;
        case c10::kHalf:
        case c10::kBFloat16:
            // A sum that is divided or made of multiplied values is rounded once, and does not overflow before.
            return op == Op::AVG || op == Op::PREMUL_SUM ? c10::kFloat : dtype;
        default: return c10::isFloat8Type(dtype) ? c10::kFloat : dtype;
    }
}

void combine(Op::RedOpType op, at::Tensor& result, const at::Tensor& other) {
    switch (op) {
        case Op::PRODUCT: result.mul_(other); return;
        case Op::MIN: at::minimum_out(result, result, other); return;
        case Op::MAX: at::maximum_out(result, result, other); return;
        case Op::BAND: result.bitwise_and_(other); return;
        case Op::BOR: result.bitwise_or_(other); return;
        case Op::BXOR: result.bitwise_xor_(other); return;
        default: result.add_(other); return;
    }
}

}  // namespace

void check_defined(Op::RedOpType op, c10::ScalarType dtype) {
    const bool exists = op != Op::UNUSED && dtype != c10::kUInt64;
    const bool complex = c10::isComplexType(dtype);
    const bool integral = c10::isIntegralType(dtype, /*includeBool=*/true);
    const bool defined = exists && !(complex && !is_linear(op)) && !(is_bitwise(op) && !integral) &&
                         !(op == Op::PREMUL_SUM && integral) && !(op == Op::AVG && dtype == c10::kBool);
    TORCH_CHECK(defined, "dicl: ReduceOp.", name_of(op), " is not defined for tensors of ", dtype);
}

double premultiplier(const Op& op) {
    // The name that all supported releases of torch have.
    const auto* supplement = dynamic_cast<const c10d::NCCLPreMulSumSupplement*>(op.supplement_.get());
    TORCH_CHECK(supplement != nullptr,
                "dicl: ReduceOp.PREMUL_SUM has no factor; make it by torch.distributed._make_nccl_premul_sum");
    return supplement->tensor_factor.defined() ? supplement->tensor_factor.item().toDouble()
                                               : supplement->double_factor;
}

Reduction::Reduction(const c10d::ReduceOp& op, c10::ScalarType dtype, int size)
    : dtype_(c10::toRealValueType(dtype)),
      host_dtype_(computing_dtype(op, dtype_)),
      host_op_(is_linear(op) ? Op::SUM : op.op_) {
    check_defined(op, dtype);
    if (op.op_ == Op::PREMUL_SUM) {
        factor_ = premultiplier(op);
    }
    if (op.op_ == Op::AVG) {
        divisor_ = size;
    }
}

at::Tensor Reduction::host_values(const at::Tensor& bytes) const {
    at::Tensor values = bytes.view(dtype_).to(host_dtype_);
    if (factor_.has_value()) {
        values.mul_(*factor_);
    }
    return values;
}

at::Tensor Reduction::fold(const at::Tensor& rows) const {
    at::Tensor result = rows[0];
    for (int64_t rank = 1; rank < rows.size(0); ++rank) {
        combine(host_op_, result, rows[rank]);
    }
    return result;
}

void Reduction::store(const at::Tensor& values, const at::Tensor& bytes) const {
    if (divisor_ != 1) {
        // Whole numbers are rounded towards zero.
        if (c10::isFloatingType(host_dtype_)) {
            values.div_(divisor_);
        } else {
            values.div_(divisor_, "trunc");
        }
    }
    const at::Tensor stored = bytes.view(dtype_);
    if (!stored.is_alias_of(values)) {
        stored.copy_(values);
    }
}

}  // namespace dipu::distributed

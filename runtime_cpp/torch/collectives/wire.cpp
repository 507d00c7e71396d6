// Finds a type of the library that has the elements' values, or their bytes.
#include "wire.h"

#include <c10/core/ScalarType.h>

#include <algorithm>

#include "distributed/reduction.h"
#include "wrapper/handles.h"

namespace dipu::collectives {
namespace {

using Op = c10d::ReduceOp;

bool supports(diopiCollective_t collective, diopiDtype_t dtype, diopiReduceOp_t op) {
    const diopiCollectivesApi_t& api = *table();
    if (dtype == diopi_dtype_unsupported) {
        return false;
    }
    bool yes = true;
    if (api.supports != nullptr) {
        check(api.supports(collective, dtype, op, &yes), nullptr, "ask what collectives support");
    }
    return yes;
}

// Bools are bytes of 0 and 1, which a sum must leave so.
std::optional<diopiReduceOp_t> operation(Op::RedOpType op, bool truth) {
    switch (op) {
        case Op::SUM: return truth ? diopiReduceMax : diopiReduceSum;
        case Op::PRODUCT: return truth ? diopiReduceMin : diopiReduceProd;
        case Op::MIN: return diopiReduceMin;
        case Op::MAX: return diopiReduceMax;
        case Op::AVG: return diopiReduceAvg;
        case Op::PREMUL_SUM: return diopiReduceSum;
        case Op::BOR: return truth ? std::optional(diopiReduceMax) : std::nullopt;
        case Op::BAND: return truth ? std::optional(diopiReduceMin) : std::nullopt;
        default: return std::nullopt;
    }
}

}  // namespace

Served moved(diopiCollective_t collective, const std::vector<at::Tensor>& tensors) {
    const c10::ScalarType dtype = tensors[0].scalar_type();
    const bool alike = std::all_of(tensors.begin(), tensors.end(),
                                   [&](const at::Tensor& tensor) { return tensor.scalar_type() == dtype; });
    if (const diopiDtype_t own = diopi_dtype(dtype); alike && supports(collective, own, diopiReduceSum)) {
        return Wire{.dtype = own};
    }
    if (supports(collective, diopi_dtype_uint8, diopiReduceSum)) {
        return Wire{.dtype = diopi_dtype_uint8, .bytes = true};
    }
    return "the vendor's library moves neither the dtype nor bytes";
}

Served reduced(diopiCollective_t collective, c10::ScalarType dtype, const c10d::ReduceOp& op) {
    distributed::check_defined(op, dtype);
    const bool truth = dtype == c10::kBool;
    const std::optional<diopiReduceOp_t> known = operation(op, truth);
    if (!known) {
        return "the contract has no such reduction";
    }
    Wire wire{.dtype = truth ? diopi_dtype_uint8 : diopi_dtype(c10::toRealValueType(dtype)),
              .per_element = c10::isComplexType(dtype) ? 2 : 1,
              .op = *known};
    if (op.op_ == Op::PREMUL_SUM) {
        if (table()->create_premul_sum == nullptr || table()->destroy_reduce_op == nullptr) {
            return "the vendor's library has no sum of multiplied values";
        }
        wire.factor = distributed::premultiplier(op);
    }
    if (!supports(collective, wire.dtype, wire.op)) {
        return "the vendor's library does not reduce the dtype";
    }
    return wire;
}

}  // namespace dipu::collectives

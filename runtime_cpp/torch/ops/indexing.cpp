// Operators whose result's size depends on the data, and indexing by lists of tensors: the vendor allocates the result.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_index_put_impl_ops.h>
#include <ATen/ops/index_meta.h>
#include <ATen/ops/index_ops.h>
#include <ATen/ops/masked_select_ops.h>
#include <ATen/ops/nonzero_ops.h>

#include <diopi/functions.h>

#include "wrapper/wrapper.h"

namespace dipu {
namespace {

namespace vendor {
constinit VendorFunction<decltype(::diopiIndex)> diopiIndex{{"diopiIndex"}};
constinit VendorFunction<decltype(::diopiIndexPutInp)> diopiIndexPutInp{{"diopiIndexPutInp"}};
constinit VendorFunction<decltype(::diopiMaskedSelect)> diopiMaskedSelect{{"diopiMaskedSelect"}};
constinit VendorFunction<decltype(::diopiNonzero)> diopiNonzero{{"diopiNonzero"}};
}  // namespace vendor

using Indices = c10::List<std::optional<at::Tensor>>;

// Indices may lie on the CPU, and may be any integers: the contract has int64 and bool.
class IndexList {
public:
    IndexList(const Indices& indices, c10::Device device) : device_(device) {
        tensors_.reserve(indices.size());
        for (const std::optional<at::Tensor>& index : indices) {
            tensors_.push_back(ready(index));
        }
        for (const at::Tensor& tensor : tensors_) {
            handles_.push_back(handle(tensor));
        }
    }

    operator diopiConstTensorHandle_t*() { return handles_.data(); }
    std::int64_t size() const { return static_cast<std::int64_t>(handles_.size()); }

private:
    at::Tensor ready(const std::optional<at::Tensor>& index) const {
        if (!index.has_value() || !index->defined()) {
            return {};
        }
        const c10::ScalarType dtype = index->scalar_type();
        TORCH_CHECK_INDEX(c10::isIntegralType(dtype, true),
                          "tensors used as indices must be long, int, byte or bool tensors");
        // A byte tensor is a mask, as torch has it.
        const bool mask = dtype == at::kBool || dtype == at::kByte;
        const c10::ScalarType wanted = mask ? at::kBool : at::kLong;
        return dtype == wanted && index->device() == device_ ? *index : index->to(at::dtype(wanted).device(device_));
    }

    c10::Device device_;
    c10::SmallVector<at::Tensor, 4> tensors_;
    c10::SmallVector<diopiConstTensorHandle_t, 4> handles_;
};

bool call_index(const at::Tensor& self, const Indices& indices, at::Tensor& out) {
    Context context(self);
    CalleeOut out_arg;
    const In self_arg(self, self.device());
    IndexList indices_arg(indices, self.device());
    return ran(vendor::diopiIndex(context, out_arg, self_arg, indices_arg, indices_arg.size()), "diopiIndex") &&
           take(out, out_arg);
}

constinit OperatorControl index_Tensor_control{"index.Tensor"};
at::Tensor index_Tensor(const at::Tensor& self, const Indices& indices) {
    if (intercepted(index_Tensor_control)) {
        return at::_ops::index_Tensor::redispatch(kInterposer, self, indices);
    }
    at::Tensor out;
    if (call_index(self, indices, out)) {
        return out;
    }
    return at::_ops::index_Tensor::redispatch(kFallback, self, indices);
}

constinit OperatorControl index_Tensor_out_control{"index.Tensor_out"};
at::Tensor& index_Tensor_out(const at::Tensor& self, const Indices& indices, at::Tensor& out) {
    if (intercepted(index_Tensor_out_control)) {
        return at::_ops::index_Tensor_out::redispatch(kInterposer, self, indices, out);
    }
    at::Tensor result;
    if (call_index(self, indices, result)) {
        assign(out, result);
        return out;
    }
    return at::_ops::index_Tensor_out::redispatch(kFallback, self, indices, out);
}

constinit OperatorControl index_put_control{"_index_put_impl_"};
at::Tensor& index_put(at::Tensor& self, const Indices& indices, const at::Tensor& values, bool accumulate, bool unsafe) {
    if (intercepted(index_put_control)) {
        return at::_ops::_index_put_impl_::redispatch(kInterposer, self, indices, values, accumulate, unsafe);
    }
    TORCH_CHECK_INDEX(self.scalar_type() == values.scalar_type(),
                      "Index put requires the source and destination dtypes match, got ", self.scalar_type(),
                      " for the destination and ", values.scalar_type(), " for the source.");
    Context context(self);
    const InOut self_arg(self);
    const In values_arg(values, self.device());
    IndexList indices_arg(indices, self.device());
    if (ran(vendor::diopiIndexPutInp(context, self_arg, values_arg, indices_arg, indices_arg.size(), accumulate),
            "diopiIndexPutInp") &&
        self_arg.flush()) {
        return self;
    }
    return at::_ops::_index_put_impl_::redispatch(kFallback, self, indices, values, accumulate, unsafe);
}

bool call_masked_select(const at::Tensor& self, const at::Tensor& mask, at::Tensor& out) {
    TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_select: expected BoolTensor for mask");
    Context context(self);
    CalleeOut out_arg;
    const In self_arg(self, self.device());
    const In mask_arg(mask, self.device());
    return ran(vendor::diopiMaskedSelect(context, out_arg, self_arg, mask_arg), "diopiMaskedSelect") &&
           take(out, out_arg);
}

constinit OperatorControl masked_select_control{"masked_select"};
at::Tensor masked_select(const at::Tensor& self, const at::Tensor& mask) {
    if (intercepted(masked_select_control)) {
        return at::_ops::masked_select::redispatch(kInterposer, self, mask);
    }
    at::Tensor out;
    if (call_masked_select(self, mask, out)) {
        return out;
    }
    return at::_ops::masked_select::redispatch(kFallback, self, mask);
}

constinit OperatorControl masked_select_out_control{"masked_select.out"};
at::Tensor& masked_select_out(const at::Tensor& self, const at::Tensor& mask, at::Tensor& out) {
    if (intercepted(masked_select_out_control)) {
        return at::_ops::masked_select_out::redispatch(kInterposer, self, mask, out);
    }
    at::Tensor result;
    if (call_masked_select(self, mask, result)) {
        assign(out, result);
        return out;
    }
    return at::_ops::masked_select_out::redispatch(kFallback, self, mask, out);
}

bool call_nonzero(const at::Tensor& self, at::Tensor& out) {
    Context context(self);
    CalleeOut out_arg;
    const In self_arg(self, self.device());
    return ran(vendor::diopiNonzero(context, out_arg, self_arg), "diopiNonzero") && take(out, out_arg);
}

constinit OperatorControl nonzero_control{"nonzero"};
at::Tensor nonzero(const at::Tensor& self) {
    if (intercepted(nonzero_control)) {
        return at::_ops::nonzero::redispatch(kInterposer, self);
    }
    at::Tensor out;
    if (call_nonzero(self, out)) {
        return out;
    }
    return at::_ops::nonzero::redispatch(kFallback, self);
}

constinit OperatorControl nonzero_out_control{"nonzero.out"};
at::Tensor& nonzero_out(const at::Tensor& self, at::Tensor& out) {
    if (intercepted(nonzero_out_control)) {
        return at::_ops::nonzero_out::redispatch(kInterposer, self, out);
    }
    TORCH_CHECK(out.scalar_type() == at::kLong, "Expected out to have scalar type Long but got scalar type ",
                out.scalar_type());
    at::Tensor result;
    if (call_nonzero(self, result)) {
        assign(out, result);
        return out;
    }
    return at::_ops::nonzero_out::redispatch(kFallback, self, out);
}

}  // namespace

void register_indexing(Registrar& registrar) {
    registrar.add(index_Tensor_control, &index_Tensor, {&vendor::diopiIndex});
    registrar.add(index_Tensor_out_control, &index_Tensor_out, {&vendor::diopiIndex});
    registrar.add(index_put_control, &index_put, {&vendor::diopiIndexPutInp});
    registrar.add(masked_select_control, &masked_select, {&vendor::diopiMaskedSelect});
    registrar.add(masked_select_out_control, &masked_select_out, {&vendor::diopiMaskedSelect});
    registrar.add(nonzero_control, &nonzero, {&vendor::diopiNonzero});
    registrar.add(nonzero_out_control, &nonzero_out, {&vendor::diopiNonzero});
}

}  // namespace dipu

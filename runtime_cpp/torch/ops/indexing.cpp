// Operators whose result's size depends on the data, and indexing by lists of tensors: the vendor allocates the result.
#include <ATen/ExpandUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_index_put_impl_ops.h>
#include <ATen/ops/index_meta.h>
#include <ATen/ops/index_ops.h>
#include <ATen/ops/masked_select_ops.h>
#include <ATen/ops/nonzero_ops.h>

#include <diopi/functions.h>

#include "wrapper/checks.h"
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

// Indices may lie on the CPU, and may be any integers: the contract has int64 and bool. Throws c10::IndexError, in torch's words,
// where their dtypes or shapes do not fit.
class IndexList {
public:
    IndexList(const Indices& indices, const at::Tensor& self) : self_(self) {
        tensors_.reserve(indices.size());
        for (const std::optional<at::Tensor>& index : indices) {
            tensors_.push_back(ready(index));
        }
        if (masks_ != 0 && positions_ != 0) {
            masks_to_positions();
        }
        TORCH_CHECK_INDEX(dims_ <= self_.dim(), "too many indices for tensor of dimension ", self_.dim(), " (got ",
                          dims_, ")");
        for (const at::Tensor& tensor : tensors_) {
            handles_.push_back(handle(tensor));
        }
        check_shapes();
    }

    operator diopiConstTensorHandle_t*() { return handles_.data(); }
    int64_t size() const { return static_cast<int64_t>(handles_.size()); }
    bool empty() const { return positions_ == 0 && masks_ == 0; }

    // Positions may be out of range, masks not.
    Raises raises() const { return positions_ != 0 ? Raises::kIndexError : Raises::kError; }

    // The mask that alone says what is written, of bytes if it was given so, in the tensor's dimensions; nothing where other indices do, too.
    at::Tensor only_mask() const {
        if (masks_ != 1 || positions_ != 0) {
            return {};
        }
        int64_t first = 0;
        while (!tensors_[static_cast<std::size_t>(first)].defined()) {
            ++first;
        }
        at::Tensor mask = bytes_.defined() ? bytes_ : tensors_[static_cast<std::size_t>(first)];
        for (int64_t dim = first + mask.dim(); dim < self_.dim(); ++dim) {
            mask = mask.unsqueeze(-1);
        }
        return mask;
    }

    // The shape of what is indexed; none where a mask's elements say it.
    std::optional<at::DimVector> result() const {
        if (masks_ != 0) {
            return std::nullopt;
        }
        at::DimVector sizes;
        std::ptrdiff_t first = -1;
        std::ptrdiff_t last = -1;
        for (int64_t dim = 0; dim < self_.dim(); ++dim) {
            if (dim < size() && tensors_[static_cast<std::size_t>(dim)].defined()) {
                first = first < 0 ? dim : first;
                last = dim;
            } else {
                sizes.push_back(self_.size(dim));
            }
        }
        // In front where the indexed dimensions are not neighbours.
        const std::ptrdiff_t place = last - first + 1 == positions_ ? first : 0;
        sizes.insert(sizes.begin() + place, shape_.begin(), shape_.end());
        return sizes;
    }

private:
    at::Tensor ready(const std::optional<at::Tensor>& index) {
        if (!index.has_value() || !index->defined()) {
            ++dims_;
            return {};
        }
        const c10::ScalarType dtype = index->scalar_type();
        TORCH_CHECK_INDEX(c10::isIntegralType(dtype, true),
                          "tensors used as indices must be long, int, byte or bool tensors");
        if (dtype == at::kByte) {
            bytes_ = *index;
            TORCH_WARN("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.");
        }
        // A byte tensor is a mask, as torch has it.
        const bool mask = dtype == at::kBool || dtype == at::kByte;
        mask ? count_mask(*index) : count_positions();
        const c10::ScalarType wanted = mask ? at::kBool : at::kLong;
        const c10::Device device = self_.device();
        TORCH_CHECK(index->is_cpu() || index->device() == device,
                    "indices should be either on cpu or on the same device as the indexed tensor (", device, ")");
        return dtype == wanted && index->device() == device ? *index : index->to(at::dtype(wanted).device(device));
    }

    void count_positions() {
        ++dims_;
        ++positions_;
    }

    void count_mask(const at::Tensor& mask) {
        for (int64_t dim = 0; dim < mask.dim(); ++dim) {
            const int64_t masked = dims_ + dim;
            TORCH_CHECK_INDEX(masked < self_.dim() && mask.size(dim) == self_.size(masked), "The shape of the mask ",
                              mask.sizes(), " at index ", dim, " does not match the shape of the indexed tensor ",
                              self_.sizes(), " at index ", masked);
        }
        dims_ += mask.dim();
        ++masks_;
    }

    // Positions meet what masks pick, and how much that is, only its elements say. One without dimensions adds one, and stays.
    void masks_to_positions() {
        const auto is_mask = [](const at::Tensor& tensor) {
            return tensor.defined() && tensor.scalar_type() == at::kBool;
        };
        decltype(tensors_) given;
        given.swap(tensors_);
        for (const at::Tensor& tensor : given) {
            if (!is_mask(tensor) || tensor.dim() == 0) {
                tensors_.push_back(tensor);
                continue;
            }
            for (const at::Tensor& places : tensor.nonzero().t().contiguous().unbind(0)) {
                tensors_.push_back(places);
                ++positions_;
            }
            --masks_;
        }
    }

    // What masks pick is counted by the vendor's function.
    void check_shapes() {
        bool nothing = false;
        for (std::size_t i = 0; masks_ == 0 && i < tensors_.size(); ++i) {
            if (!tensors_[i].defined()) {
                continue;
            }
            nothing = nothing || self_.size(static_cast<int64_t>(i)) == 0;
            TORCH_CHECK_INDEX(broadcasts(tensors_[i].sizes()),
                              "shape mismatch: indexing tensors could not be broadcast together with shapes ",
                              shapes());
            shape_ = at::infer_size_dimvector(shape_, tensors_[i].sizes());
        }
        TORCH_CHECK_INDEX(!nothing || c10::multiply_integers(shape_) == 0,
                          "index is out of bounds for dimension with size 0");
    }

    bool broadcasts(at::IntArrayRef sizes) const {
        for (std::size_t i = 1; i <= std::min(sizes.size(), shape_.size()); ++i) {
            const int64_t a = shape_[shape_.size() - i];
            const int64_t b = sizes[sizes.size() - i];
            if (a != b && a != 1 && b != 1) {
                return false;
            }
        }
        return true;
    }

    std::string shapes() const {
        std::string text;
        for (const at::Tensor& tensor : tensors_) {
            if (tensor.defined()) {
                text += c10::str(text.empty() ? "" : ", ", tensor.sizes());
            }
        }
        return text;
    }

    const at::Tensor& self_;
    c10::SmallVector<at::Tensor, 4> tensors_;
    c10::SmallVector<diopiConstTensorHandle_t, 4> handles_;
    at::Tensor bytes_;  // a mask of bytes, as it came
    at::DimVector shape_;  // of the positions together
    int64_t dims_ = 0;  // that the list takes
    int64_t positions_ = 0;
    int64_t masks_ = 0;
};

bool call_index(const at::Tensor& self, const Indices& indices, at::Tensor& out) {
    IndexList indices_arg(indices, self);
    Context context(self);
    CalleeOut out_arg;
    const In self_arg(self, self.device());
    TORCH_CHECK_INDEX(!indices_arg.empty(), "at least one index must be provided");
    return ran(vendor::diopiIndex(context, out_arg, self_arg, indices_arg, indices_arg.size()), "diopiIndex",
               indices_arg.raises()) &&
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
at::Tensor& index_put(at::Tensor& self, const Indices& indices, const at::Tensor& values, bool accumulate,
                      bool unsafe) {
    if (intercepted(index_put_control)) {
        return at::_ops::_index_put_impl_::redispatch(kInterposer, self, indices, values, accumulate, unsafe);
    }
    IndexList indices_arg(indices, self);
    // Where a single number is written torch fills by the mask, which takes other dtypes and refuses bytes.
    const at::Tensor mask = !accumulate && values.numel() == 1 ? indices_arg.only_mask() : at::Tensor();
    if (mask.defined() && (mask.scalar_type() != at::kBool || self.scalar_type() != values.scalar_type())) {
        return self.masked_fill_(mask, values.reshape({}));
    }
    // Torch refuses two dtypes, or the shapes before that.
    if (self.scalar_type() != values.scalar_type() || !is_apart(self, values, indices)) {
        return at::_ops::_index_put_impl_::redispatch(kFallback, self, indices, values, accumulate, unsafe);
    }
    if (const auto result = indices_arg.result()) {
        TORCH_CHECK(at::is_expandable_to(values.sizes(), *result), "shape mismatch: value tensor of shape ",
                    values.sizes(), " cannot be broadcast to indexing result of shape ", at::IntArrayRef(*result));
    }
    if (indices_arg.empty()) {
        return accumulate ? self.add_(values) : self.copy_(values);
    }
    Context context(self);
    const InOut self_arg(self);
    const In values_arg(values, self.device());
    if (ran(vendor::diopiIndexPutInp(context, self_arg, values_arg, indices_arg, indices_arg.size(), accumulate),
            "diopiIndexPutInp", indices_arg.raises()) &&
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
    TORCH_CHECK(self.scalar_type() == out.scalar_type(),
                "masked_select(): self and result must have the same scalar type");
    at::Tensor result;
    if (is_apart(out, self, mask) && call_masked_select(self, mask, result)) {
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
    TORCH_CHECK(self.device() == out.device(), "expected self and out to be on the same device, but got out on ",
                out.device(), " and self on ", self.device());
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

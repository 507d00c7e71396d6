// Operators on lists of tensors: the vendor's function of lists where all entries have tensors of floats that are alike and dense, else its
// function for each such entry, and torch's own loop for the others.
#include "derivations.h"

#include <ATen/ops/_foreach_add_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_add_ops.h>
#include <ATen/ops/_foreach_addcdiv_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_addcdiv_ops.h>
#include <ATen/ops/_foreach_addcmul_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_addcmul_ops.h>
#include <ATen/ops/_foreach_div_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_div_ops.h>
#include <ATen/ops/_foreach_lerp_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_lerp_ops.h>
#include <ATen/ops/_foreach_mul_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_mul_ops.h>
#include <ATen/ops/_foreach_neg_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_neg_ops.h>
#include <ATen/ops/_foreach_sqrt_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/_foreach_sqrt_ops.h>

#include <diopi/functions.h>
#include <diopi/functions_ext.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "wrapper/context.h"
#include "wrapper/values.h"
#include "wrapper/vendor_function.h"

namespace dipu {
namespace {

// The entry of an argument at one position: of lists their entry, of anything else itself.
const at::Tensor& entry(at::TensorList tensors, std::size_t i) { return tensors[i]; }
const at::Scalar& entry(at::ArrayRef<at::Scalar> scalars, std::size_t i) { return scalars[i]; }
const at::Scalar& entry(const at::Scalar& scalar, std::size_t) { return scalar; }

// The same as a list of one.
at::TensorList alone(at::TensorList tensors, std::size_t i) { return tensors.slice(i, 1); }
at::ArrayRef<at::Scalar> alone(at::ArrayRef<at::Scalar> scalars, std::size_t i) { return scalars.slice(i, 1); }
const at::Scalar& alone(const at::Scalar& scalar, std::size_t) { return scalar; }

bool has_length(at::TensorList tensors, std::size_t length) { return tensors.size() == length; }
bool has_length(at::ArrayRef<at::Scalar> scalars, std::size_t length) { return scalars.size() == length; }
bool has_length(const at::Scalar&, std::size_t) { return true; }

// Whether `first`, which may be written, and another entry allow a call without torch's rules of shapes and dtypes.
bool fits(const at::Tensor& first, const at::Tensor& other) { return agrees(first, other) && may_write(first, other); }
bool fits(const at::Tensor&, const at::Scalar& scalar) { return is_real(scalar); }

template <class... Others>
bool are_alike(const at::Tensor& first, const Others&... others) {
    return is_plain(first) && first.numel() != 0 && (fits(first, others) && ...);
}

// Whether one call of a function of lists does it all.
template <class... Others>
bool are_all_alike(at::TensorList self, const Others&... others) {
    for (std::size_t i = 0; i < self.size(); ++i) {
        if (!at::isFloatingType(self[i].scalar_type()) || self[i].device() != self[0].device() ||
            !are_alike(self[i], entry(others, i)...)) {
            return false;
        }
    }
    return true;
}

// What a function of lists takes: scalars have to be the same for all.
class ListArg {
public:
    explicit ListArg(at::TensorList tensors) {
        handles_.reserve(tensors.size());
        for (const at::Tensor& tensor : tensors) {
            handles_.push_back(handle(tensor));
        }
    }
    operator diopiConstTensorHandle_t*() { return handles_.data(); }

private:
    std::vector<diopiConstTensorHandle_t> handles_;
};

bool is_one(at::TensorList) { return true; }
bool is_one(const at::Scalar&) { return true; }
bool is_one(at::ArrayRef<at::Scalar> scalars) {
    return std::all_of(scalars.begin(), scalars.end(),
                       [&](const at::Scalar& each) { return each.toDouble() == scalars[0].toDouble(); });
}

at::TensorList of_all(at::TensorList tensors) { return tensors; }
const at::Scalar& of_all(const at::Scalar& scalar) { return scalar; }
const at::Scalar& of_all(at::ArrayRef<at::Scalar> scalars) { return scalars[0]; }

// For operators without a function of lists.
constexpr auto no_lists = [](Context&, at::TensorList, at::TensorList, const auto&...) { return false; };

// `direct(context, out, first, others...)` runs a function of the vendor, `lists` one of lists; `torchs` is torch's own loop, whose checks serve lists that do
// not fit each other.
template <class Overload, class Schema = typename Overload::schema>
struct Foreach;

template <class Overload, class... Others>
struct Foreach<Overload, std::vector<at::Tensor>(at::TensorList, Others...)> {
    using Loop = std::vector<at::Tensor> (*)(at::TensorList, Others...);

    template <auto direct, auto lists, Loop torchs>
    static std::vector<at::Tensor> call(at::TensorList self, Others... others) {
        if (intercepted(derived_control<Overload>)) {
            return Overload::redispatch(kInterposer, self, others...);
        }
        if (self.empty() || !(has_length(others, self.size()) && ...)) {
            return torchs(self, others...);
        }
        std::vector<at::Tensor> results;
        results.reserve(self.size());
        if (are_all_alike(self, others...) && (is_one(others) && ...)) {
            for (const at::Tensor& each : self) {
                results.push_back(new_like(each));
            }
            Context context(self[0]);
            if (lists(context, results, self, of_all(others)...)) {
                return results;
            }
            results.clear();
        }
        for (std::size_t i = 0; i < self.size(); ++i) {
            if (are_alike(self[i], entry(others, i)...)) {
                at::Tensor result = new_like(self[i]);
                Context context(self[i]);
                if (direct(context, result, self[i], entry(others, i)...)) {
                    results.push_back(std::move(result));
                    continue;
                }
                raise_failure();
            }
            results.push_back(torchs(alone(self, i), alone(others, i)...)[0]);
        }
        return results;
    }
};

template <class Overload, class... Others>
struct Foreach<Overload, void(at::TensorList, Others...)> {
    using Loop = void (*)(at::TensorList, Others...);

    template <auto direct, auto lists, Loop torchs>
    static void call(at::TensorList self, Others... others) {
        if (intercepted(derived_control<Overload>)) {
            return Overload::redispatch(kInterposer, self, others...);
        }
        if (self.empty() || !(has_length(others, self.size()) && ...)) {
            return torchs(self, others...);
        }
        if (are_all_alike(self, others...) && (is_one(others) && ...)) {
            Context context(self[0]);
            if (lists(context, self, self, of_all(others)...)) {
                return;
            }
        }
        for (std::size_t i = 0; i < self.size(); ++i) {
            if (are_alike(self[i], entry(others, i)...)) {
                Context context(self[i]);
                if (direct(context, self[i], self[i], entry(others, i)...)) {
                    continue;
                }
                raise_failure();
            }
            torchs(alone(self, i), alone(others, i)...);
        }
    }
};

using Tensor = at::Tensor;
using Scalar = at::Scalar;

// A function and the ways to call it; `out` and `x` are one tensor in place.
#define DIPU_VENDOR_FUNCTION(name)                    \
    constinit VendorFunction<decltype(::name)> name { \
        {                                             \
            #name                                     \
        }                                             \
    }
namespace vendor {
DIPU_VENDOR_FUNCTION(diopiAdd);
DIPU_VENDOR_FUNCTION(diopiAddInp);
DIPU_VENDOR_FUNCTION(diopiMul);
DIPU_VENDOR_FUNCTION(diopiMulInp);
DIPU_VENDOR_FUNCTION(diopiMulScalar);
DIPU_VENDOR_FUNCTION(diopiMulInpScalar);
DIPU_VENDOR_FUNCTION(diopiDiv);
DIPU_VENDOR_FUNCTION(diopiDivInp);
DIPU_VENDOR_FUNCTION(diopiDivScalar);
DIPU_VENDOR_FUNCTION(diopiDivInpScalar);
DIPU_VENDOR_FUNCTION(diopiAddcmulInp);
DIPU_VENDOR_FUNCTION(diopiAddcdivInp);
DIPU_VENDOR_FUNCTION(diopiSqrt);
DIPU_VENDOR_FUNCTION(diopiSqrtInp);
DIPU_VENDOR_FUNCTION(diopiNeg);
DIPU_VENDOR_FUNCTION(diopiLerpScalar);
DIPU_VENDOR_FUNCTION(diopiForeachAddList);
DIPU_VENDOR_FUNCTION(diopiForeachMulList);
DIPU_VENDOR_FUNCTION(diopiForeachDivList);
DIPU_VENDOR_FUNCTION(diopiForeachDiv);
DIPU_VENDOR_FUNCTION(diopiForeachSqrt);
DIPU_VENDOR_FUNCTION(diopiForeachLerp);
DIPU_VENDOR_FUNCTION(diopiForeachAddcmul);
DIPU_VENDOR_FUNCTION(diopiForeachAddcdiv);
DIPU_VENDOR_FUNCTION(diopiForeachmulScalar);
}  // namespace vendor
#undef DIPU_VENDOR_FUNCTION

// function(context, out, tensors..., scalar) or, in place, function(context, out, other tensors..., scalar); `more` are what the function
// takes besides.
template <auto& function, auto... more>
constexpr auto of_tensors = [](Context& context, const Tensor& out, const auto&... tensors) {
    return ran(function(context, out_handle(out), handle(tensors)..., more...), function.name);
};
template <auto& function, auto... more>
constexpr auto in_place_of_tensors = [](Context& context, const Tensor& out, const Tensor&, const auto&... others) {
    return ran(function(context, out_handle(out), handle(others)..., more...), function.name);
};
template <auto& function, auto... more>
constexpr auto of_scalar = [](Context& context, const Tensor& out, const Tensor& x, const Scalar& scalar) {
    return ran(function(context, out_handle(out), handle(x), ScalarArg(scalar), more...), function.name);
};
template <auto& function, auto... more>
constexpr auto in_place_of_scalar = [](Context& context, const Tensor& out, const Tensor&, const Scalar& scalar) {
    return ran(function(context, out_handle(out), ScalarArg(scalar), more...), function.name);
};
template <auto& function>
constexpr auto of_pair =
    [](Context& context, const Tensor& out, const Tensor& x, const Tensor& y, const Scalar& scalar) {
        return ran(function(context, out_handle(out), handle(x), handle(y), ScalarArg(scalar)), function.name);
    };
template <auto& function>
constexpr auto in_place_of_other =
    [](Context& context, const Tensor& out, const Tensor&, const Tensor& y, const Scalar& scalar) {
        return ran(function(context, out_handle(out), handle(y), ScalarArg(scalar)), function.name);
    };
template <auto& function>
constexpr auto in_place_of_others =
    [](Context& context, const Tensor& out, const Tensor&, const Tensor& y, const Tensor& z, const Scalar& scalar) {
        return ran(function(context, out_handle(out), handle(y), handle(z), ScalarArg(scalar)), function.name);
    };

// function(context, outs, lists..., count) or, with a scalar behind the lists, function(context, outs, lists..., count, scalar).
template <auto& function>
constexpr auto of_lists = [](Context& context, at::TensorList outs, at::TensorList self, const auto&... others) {
    std::vector<diopiTensorHandle_t> results;
    for (const Tensor& out : outs) {
        results.push_back(out_handle(out));
    }
    return ran(function(context, results.data(), ListArg(self), ListArg(others)..., static_cast<int64_t>(self.size())),
               function.name);
};
template <auto& function>
constexpr auto of_lists_and_scalar =
    [](Context& context, at::TensorList outs, at::TensorList self, const auto&... others) {
        std::vector<diopiTensorHandle_t> results;
        for (const Tensor& out : outs) {
            results.push_back(out_handle(out));
        }
        const auto called = [&](const Scalar& scalar, auto&&... lists) {
            return ran(function(context, results.data(), ListArg(self), lists..., static_cast<int64_t>(self.size()),
                                ScalarArg(scalar)),
                       function.name);
        };
        const auto given = std::forward_as_tuple(others...);
        if constexpr (sizeof...(others) == 1) {
            return called(std::get<0>(given));
        } else if constexpr (sizeof...(others) == 2) {
            return called(std::get<1>(given), ListArg(std::get<0>(given)));
        } else {
            return called(std::get<2>(given), ListArg(std::get<0>(given)), ListArg(std::get<1>(given)));
        }
    };

// One row: an overload, torch's loop for it, and the functions that compute an entry or all.
template <class Overload, auto direct, auto lists, typename Foreach<Overload>::Loop torchs>
void bind(Derivations& d, VendorSlot& function, VendorSlot& function_of_lists) {
    d.bind_any<Overload>(&Foreach<Overload>::template call<direct, lists, torchs>, {&function, &function_of_lists});
}

}  // namespace

void derive_foreach(Derivations& d) {
    namespace ops = at::_ops;
    namespace torchs = at::compositeexplicitautograd;
    namespace v = vendor;
    constexpr auto kWhole = RoundModeNone;  // of a quotient

    bind<ops::_foreach_add_List, of_pair<v::diopiAdd>, of_lists_and_scalar<v::diopiForeachAddList>,
         &torchs::_foreach_add>(d, v::diopiAdd, v::diopiForeachAddList);
    bind<ops::_foreach_add__List, in_place_of_other<v::diopiAddInp>, of_lists_and_scalar<v::diopiForeachAddList>,
         &torchs::_foreach_add_>(d, v::diopiAddInp, v::diopiForeachAddList);
    bind<ops::_foreach_mul_List, of_tensors<v::diopiMul>, of_lists<v::diopiForeachMulList>, &torchs::_foreach_mul>(
        d, v::diopiMul, v::diopiForeachMulList);
    bind<ops::_foreach_mul__List, in_place_of_tensors<v::diopiMulInp>, of_lists<v::diopiForeachMulList>,
         &torchs::_foreach_mul_>(d, v::diopiMulInp, v::diopiForeachMulList);
    bind<ops::_foreach_mul_ScalarList, of_scalar<v::diopiMulScalar>, of_lists_and_scalar<v::diopiForeachmulScalar>,
         &torchs::_foreach_mul>(d, v::diopiMulScalar, v::diopiForeachmulScalar);
    bind<ops::_foreach_mul__ScalarList, in_place_of_scalar<v::diopiMulInpScalar>,
         of_lists_and_scalar<v::diopiForeachmulScalar>, &torchs::_foreach_mul_>(d, v::diopiMulInpScalar,
                                                                                v::diopiForeachmulScalar);
    bind<ops::_foreach_div_List, of_tensors<v::diopiDiv, kWhole>, of_lists<v::diopiForeachDivList>,
         &torchs::_foreach_div>(d, v::diopiDiv, v::diopiForeachDivList);
    bind<ops::_foreach_div__List, in_place_of_tensors<v::diopiDivInp, kWhole>, of_lists<v::diopiForeachDivList>,
         &torchs::_foreach_div_>(d, v::diopiDivInp, v::diopiForeachDivList);
    bind<ops::_foreach_div_Scalar, of_scalar<v::diopiDivScalar, kWhole>, of_lists_and_scalar<v::diopiForeachDiv>,
         &torchs::_foreach_div>(d, v::diopiDivScalar, v::diopiForeachDiv);
    bind<ops::_foreach_div__Scalar, in_place_of_scalar<v::diopiDivInpScalar, kWhole>,
         of_lists_and_scalar<v::diopiForeachDiv>, &torchs::_foreach_div_>(d, v::diopiDivInpScalar, v::diopiForeachDiv);
    bind<ops::_foreach_div_ScalarList, of_scalar<v::diopiDivScalar, kWhole>, of_lists_and_scalar<v::diopiForeachDiv>,
         &torchs::_foreach_div>(d, v::diopiDivScalar, v::diopiForeachDiv);
    bind<ops::_foreach_div__ScalarList, in_place_of_scalar<v::diopiDivInpScalar, kWhole>,
         of_lists_and_scalar<v::diopiForeachDiv>, &torchs::_foreach_div_>(d, v::diopiDivInpScalar, v::diopiForeachDiv);
    bind<ops::_foreach_addcmul__Scalar, in_place_of_others<v::diopiAddcmulInp>,
         of_lists_and_scalar<v::diopiForeachAddcmul>, &torchs::_foreach_addcmul_>(d, v::diopiAddcmulInp,
                                                                                  v::diopiForeachAddcmul);
    bind<ops::_foreach_addcmul__ScalarList, in_place_of_others<v::diopiAddcmulInp>,
         of_lists_and_scalar<v::diopiForeachAddcmul>, &torchs::_foreach_addcmul_>(d, v::diopiAddcmulInp,
                                                                                  v::diopiForeachAddcmul);
    bind<ops::_foreach_addcdiv__Scalar, in_place_of_others<v::diopiAddcdivInp>,
         of_lists_and_scalar<v::diopiForeachAddcdiv>, &torchs::_foreach_addcdiv_>(d, v::diopiAddcdivInp,
                                                                                  v::diopiForeachAddcdiv);
    bind<ops::_foreach_addcdiv__ScalarList, in_place_of_others<v::diopiAddcdivInp>,
         of_lists_and_scalar<v::diopiForeachAddcdiv>, &torchs::_foreach_addcdiv_>(d, v::diopiAddcdivInp,
                                                                                  v::diopiForeachAddcdiv);
    bind<ops::_foreach_sqrt, of_tensors<v::diopiSqrt>, of_lists<v::diopiForeachSqrt>, &torchs::_foreach_sqrt>(
        d, v::diopiSqrt, v::diopiForeachSqrt);
    bind<ops::_foreach_sqrt_, in_place_of_tensors<v::diopiSqrtInp>, of_lists<v::diopiForeachSqrt>,
         &torchs::_foreach_sqrt_>(d, v::diopiSqrtInp, v::diopiForeachSqrt);
    bind<ops::_foreach_neg, of_tensors<v::diopiNeg>, no_lists, &torchs::_foreach_neg>(d, v::diopiNeg, v::diopiNeg);
    bind<ops::_foreach_lerp__Scalar, of_pair<v::diopiLerpScalar>, of_lists_and_scalar<v::diopiForeachLerp>,
         &torchs::_foreach_lerp_>(d, v::diopiLerpScalar, v::diopiForeachLerp);
}

}  // namespace dipu

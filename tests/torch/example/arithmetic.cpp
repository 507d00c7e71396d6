// A wrapper file in the form that the generator emits: add in its three forms, comparison, relu and mm.
#include <ATen/ops/add_meta.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/eq_meta.h>
#include <ATen/ops/eq_ops.h>
#include <ATen/ops/mm_meta.h>
#include <ATen/ops/mm_ops.h>
#include <ATen/ops/relu_ops.h>

#include <diopi/functions.h>

#include "wrapper/wrapper.h"

namespace dipu {
namespace {

namespace vendor {
constinit VendorFunction<decltype(::diopiAdd)> diopiAdd{{"diopiAdd"}};
constinit VendorFunction<decltype(::diopiAddScalar)> diopiAddScalar{{"diopiAddScalar"}};
constinit VendorFunction<decltype(::diopiEq)> diopiEq{{"diopiEq"}};
constinit VendorFunction<decltype(::diopiMm)> diopiMm{{"diopiMm"}};
constinit VendorFunction<decltype(::diopiRelu)> diopiRelu{{"diopiRelu"}};
constinit VendorFunction<decltype(::diopiReluInp)> diopiReluInp{{"diopiReluInp"}};
}  // namespace vendor

// add: elementwise, with a scalar form and a fast path.
struct Add : at::meta::structured_add_Tensor {
    static bool call(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha, const at::Tensor& out) {
        const ScalarArg alpha_arg(alpha);
        if (!alpha_arg) {
            return refuse("complex scalar");
        }
        Context context(out);
        return ran(vendor::diopiAdd(context, out_handle(out), handle(self), handle(other), alpha_arg), "diopiAdd");
    }

    static bool call_scalar(const at::Tensor& self, const at::Scalar& other, const at::Scalar& alpha, const at::Tensor& out) {
        const ScalarArg other_arg(other);
        const ScalarArg alpha_arg(alpha);
        if (!other_arg || !alpha_arg) {
            return refuse("complex scalar");
        }
        Context context(out);
        return ran(vendor::diopiAddScalar(context, out_handle(out), handle(self), other_arg, alpha_arg), "diopiAddScalar");
    }

    bool impl(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha, const at::Tensor& out) {
        if (out.numel() == 0) {
            return true;
        }
        const c10::ScalarType dtype = common_dtype();
        const Out out_arg(out, dtype);
        const In self_arg(self, dtype, out.device());
        if (is_host_scalar(other)) {
            return call_scalar(self_arg.tensor(), other.item(), alpha, out_arg.tensor()) && out_arg.flush();
        }
        const In other_arg(other, dtype, out.device());
        return call(self_arg.tensor(), other_arg.tensor(), alpha, out_arg.tensor()) && out_arg.flush();
    }
};

constinit OperatorControl add_Tensor_control{"add.Tensor"};
at::Tensor add_Tensor(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
    if (intercepted(add_Tensor_control)) {
        return at::_ops::add_Tensor::redispatch(kInterposer, self, other, alpha);
    }
    if (fast_inputs(self, other)) {
        at::Tensor out = new_like(self);
        if (Add::call(self, other, alpha, out)) {
            return out;
        }
    } else {
        Functional<Add, 1> op;
        op.meta(self, other, alpha);
        if (op.impl(self, other, alpha, op.output(0))) {
            return std::move(op.outputs[0]);
        }
    }
    return at::_ops::add_Tensor::redispatch(kFallback, self, other, alpha);
}

constinit OperatorControl add_out_control{"add.out"};
at::Tensor& add_out(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha, at::Tensor& out) {
    if (intercepted(add_out_control)) {
        return at::_ops::add_out::redispatch(kInterposer, self, other, alpha, out);
    }
    if (fast_output(out, self, other)) {
        if (Add::call(self, other, alpha, out)) {
            return out;
        }
    } else {
        OutVariant<Add, 1> op(out);
        op.meta(self, other, alpha);
        if (op.impl(self, other, alpha, op.output(0))) {
            op.flush();
            return out;
        }
    }
    return at::_ops::add_out::redispatch(kFallback, self, other, alpha, out);
}

constinit OperatorControl add__Tensor_control{"add_.Tensor"};
at::Tensor& add__Tensor(at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
    if (intercepted(add__Tensor_control)) {
        return at::_ops::add__Tensor::redispatch(kInterposer, self, other, alpha);
    }
    if (fast_output(self, other)) {
        if (Add::call(self, other, alpha, self)) {
            return self;
        }
    } else {
        Inplace<Add> op(self);
        op.meta(self, other, alpha);
        if (op.impl(self, other, alpha, op.output(0))) {
            op.flush();
            return self;
        }
    }
    return at::_ops::add__Tensor::redispatch(kFallback, self, other, alpha);
}

// eq: the inputs have the common dtype, the output is bool.
struct Eq : at::meta::structured_eq_Tensor {
    static bool call(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
        Context context(out);
        return ran(vendor::diopiEq(context, out_handle(out), handle(self), handle(other)), "diopiEq");
    }

    bool impl(const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
        if (out.numel() == 0) {
            return true;
        }
        const c10::ScalarType dtype = common_dtype();
        const Out out_arg(out, c10::kBool);
        const In self_arg(self, dtype, out.device());
        const In other_arg(other, dtype, out.device());
        return call(self_arg.tensor(), other_arg.tensor(), out_arg.tensor()) && out_arg.flush();
    }
};

constinit OperatorControl eq_Tensor_control{"eq.Tensor"};
at::Tensor eq_Tensor(const at::Tensor& self, const at::Tensor& other) {
    if (intercepted(eq_Tensor_control)) {
        return at::_ops::eq_Tensor::redispatch(kInterposer, self, other);
    }
    if (fast_inputs(self, other)) {
        at::Tensor out = new_like(self, c10::kBool);
        if (Eq::call(self, other, out)) {
            return out;
        }
    } else {
        Functional<Eq, 1> op;
        op.meta(self, other);
        if (op.impl(self, other, op.output(0))) {
            return std::move(op.outputs[0]);
        }
    }
    return at::_ops::eq_Tensor::redispatch(kFallback, self, other);
}

// mm: structured, not elementwise; meta checks and sizes, no common dtype.
struct Mm : at::meta::structured_mm {
    bool impl(const at::Tensor& self, const at::Tensor& mat2, const at::Tensor& out) {
        const Out out_arg(out);
        const In self_arg(self, out.device());
        const In mat2_arg(mat2, out.device());
        Context context(out);
        return ran(vendor::diopiMm(context, out_arg, self_arg, mat2_arg), "diopiMm") && out_arg.flush();
    }
};

constinit OperatorControl mm_control{"mm"};
at::Tensor mm(const at::Tensor& self, const at::Tensor& mat2) {
    if (intercepted(mm_control)) {
        return at::_ops::mm::redispatch(kInterposer, self, mat2);
    }
    Functional<Mm, 1> op;
    op.meta(self, mat2);
    if (op.impl(self, mat2, op.output(0))) {
        return std::move(op.outputs[0]);
    }
    return at::_ops::mm::redispatch(kFallback, self, mat2);
}

constinit OperatorControl mm_out_control{"mm.out"};
at::Tensor& mm_out(const at::Tensor& self, const at::Tensor& mat2, at::Tensor& out) {
    if (intercepted(mm_out_control)) {
        return at::_ops::mm_out::redispatch(kInterposer, self, mat2, out);
    }
    OutVariant<Mm, 1> op(out);
    op.meta(self, mat2);
    if (op.impl(self, mat2, op.output(0))) {
        op.flush();
        return out;
    }
    return at::_ops::mm_out::redispatch(kFallback, self, mat2, out);
}

// relu: plain; the output's rule is "like the input".
constinit OperatorControl relu_control{"relu"};
at::Tensor relu(const at::Tensor& self) {
    if (intercepted(relu_control)) {
        return at::_ops::relu::redispatch(kInterposer, self);
    }
    at::Tensor out = new_preserved(self, self.scalar_type());
    const In self_arg(self, out.device());
    Context context(out);
    if (ran(vendor::diopiRelu(context, out_handle(out), self_arg), "diopiRelu")) {
        return out;
    }
    return at::_ops::relu::redispatch(kFallback, self);
}

constinit OperatorControl relu__control{"relu_"};
at::Tensor& relu_(at::Tensor& self) {
    if (intercepted(relu__control)) {
        return at::_ops::relu_::redispatch(kInterposer, self);
    }
    const InOut self_arg(self);
    Context context(self);
    if (ran(vendor::diopiReluInp(context, self_arg), "diopiReluInp")) {
        self_arg.flush();
        return self;
    }
    return at::_ops::relu_::redispatch(kFallback, self);
}

}  // namespace

void register_arithmetic(Registrar& registrar) {
    registrar.add(add_Tensor_control, &add_Tensor, {&vendor::diopiAdd, &vendor::diopiAddScalar});
    registrar.add(add_out_control, &add_out, {&vendor::diopiAdd, &vendor::diopiAddScalar});
    registrar.add(add__Tensor_control, &add__Tensor, {&vendor::diopiAdd, &vendor::diopiAddScalar});
    registrar.add(eq_Tensor_control, &eq_Tensor, {&vendor::diopiEq});
    registrar.add(mm_control, &mm, {&vendor::diopiMm});
    registrar.add(mm_out_control, &mm_out, {&vendor::diopiMm});
    registrar.add(relu_control, &relu, {&vendor::diopiRelu});
    registrar.add(relu__control, &relu_, {&vendor::diopiReluInp});
}

}  // namespace dipu

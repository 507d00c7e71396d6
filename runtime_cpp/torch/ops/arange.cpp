// Counting: the dtype of the result says how the ends and the step are read, which no schema of the contract says.
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange_ops.h>

#include <diopi/functions.h>

#include <cmath>
#include <limits>

#include "wrapper/checks.h"
#include "wrapper/wrapper.h"

namespace dipu {
namespace {

namespace vendor {
constinit VendorFunction<decltype(::diopiArange)> diopiArange{{"diopiArange"}};
}  // namespace vendor

// The elements of start, start + step, ... before `end`; int64 counts in whole numbers, all others in float64.
int64_t count_of(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, bool whole) {
    if (whole) {
        const int64_t distance = end.toLong() - start.toLong();
        const int64_t stride = step.toLong();
        TORCH_CHECK_VALUE(stride != 0, "step must be nonzero");
        return (distance + stride - (stride > 0 ? 1 : -1)) / stride;
    }
    const double count = std::ceil((end.toDouble() - start.toDouble()) / step.toDouble());
    TORCH_CHECK(count < static_cast<double>(std::numeric_limits<int64_t>::max()), "invalid size, possible overflow?");
    return static_cast<int64_t>(count);
}

void check_range(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step) {
    const double first = start.toDouble();
    const double last = end.toDouble();
    const double stride = step.toDouble();
    TORCH_CHECK_VALUE(stride != 0, "step must be nonzero");
    TORCH_CHECK(std::isfinite(first) && std::isfinite(last), "unsupported range: ", first, " -> ", last);
    TORCH_CHECK((stride > 0) == (last >= first) || last == first,
                "upper bound and lower bound inconsistent with step sign");
}

constinit OperatorControl arange_control{"arange.start_out"};
at::Tensor& arange(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::Tensor& out) {
    if (intercepted(arange_control)) {
        return at::_ops::arange_start_out::redispatch(kInterposer, start, end, step, out);
    }
    check_range(start, end, step);
    const bool whole = c10::isIntegralType(out.scalar_type(), false);
    const int64_t count = count_of(start, end, step, out.scalar_type() == at::kLong);
    if (!is_apart(out) || !checks::asked(out.numel() == 0 || out.numel() == count)) {
        return at::_ops::arange_start_out::redispatch(kFallback, start, end, step, out);
    }
    if (out.numel() != count) {
        out.resize_({count});
    }
    if (count == 0) {
        return out;
    }
    const at::Scalar first = whole ? at::Scalar(start.toLong()) : start;
    const at::Scalar stride = whole ? at::Scalar(step.toLong()) : step;
    // The end only bounds the count, which the output has: half a step beyond the last element.
    const double last = first.toDouble() + stride.toDouble() * (static_cast<double>(count) - 0.5);
    const at::Scalar bound = whole ? at::Scalar(first.toLong() + stride.toLong() * count) : at::Scalar(last);
    Context context(out);
    const Out out_arg(out);
    const ScalarArg start_arg(first);
    const ScalarArg end_arg(bound);
    const ScalarArg step_arg(stride);
    if (!c10::isComplexType(out.scalar_type()) && !(whole && stride.toLong() == 0) &&
        ran(vendor::diopiArange(context, out_arg, start_arg, end_arg, step_arg), "diopiArange") && out_arg.flush()) {
        return out;
    }
    return at::_ops::arange_start_out::redispatch(kFallback, start, end, step, out);
}

}  // namespace

void register_arange(Registrar& registrar) { registrar.add(arange_control, &arange, {&vendor::diopiArange}); }

}  // namespace dipu

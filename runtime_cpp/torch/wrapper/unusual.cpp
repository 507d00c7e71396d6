// The cold parts of what recognizes unusual calls.
#include "unusual.h"

#include <ATen/MemoryOverlap.h>
#include <c10/util/overflows.h>

#include <cmath>

#include "handles.h"

namespace dipu {

bool overlaps_itself(const at::Tensor& out) { return at::has_internal_overlap(out) == at::MemOverlap::Yes; }

bool overlaps(const at::Tensor& out, const at::Tensor& other, bool same) {
    const at::MemOverlapStatus status = at::get_overlap_status(out, other);
    return status == at::MemOverlapStatus::Partial || (status == at::MemOverlapStatus::Full && !same);
}

bool holds(c10::ScalarType dtype, const at::Scalar& value) {
    const auto fits = [&](auto number) {
        using Number = decltype(number);
        if (is_beyond_int64(value)) {
            return !std::numeric_limits<Number>::is_integer;
        }
        if (!value.isFloatingPoint()) {
            return !c10::overflows<Number>(value.toLong(), /*strict_unsigned=*/true);
        }
        const double given = value.toDouble();
        return !c10::overflows<Number>(given, true) &&
               (!std::numeric_limits<Number>::is_integer || std::trunc(given) == given);
    };
    switch (dtype) {
#define DIPU_FITS(type, name) \
    case c10::ScalarType::name: return fits(type{});
        AT_FORALL_SCALAR_TYPES_AND3(Bool, Half, BFloat16, DIPU_FITS)
#undef DIPU_FITS
        default: return true;
    }
}

}  // namespace dipu

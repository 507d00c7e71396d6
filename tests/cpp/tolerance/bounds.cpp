// The bounds of runtime_cpp/torch/interposer/tolerance.h, by the enumerator of an element type.
#include <diopi/diopirt.h>
#include <diopi/dtypes.h>

#include <cstdint>

#include "tolerance.h"

namespace {

dipu::Precision precision(int dtype) {
    switch (dtype) {
#define DIOPI_PRECISION(name, digits, exponent) \
    case diopi_dtype_##name: return dipu::precision_of(digits, exponent);
        DIOPI_FOR_EACH_FLOAT(DIOPI_PRECISION)
#undef DIOPI_PRECISION
        default: return {};
    }
}

}  // namespace

extern "C" {

void bounds(int dtype, int64_t count, const double* exact, double terms, double scale, double* result) {
    for (int64_t i = 0; i < count; ++i) {
        result[i] = dipu::bound(exact[i], precision(dtype), terms, scale);
    }
}

double largest(int dtype) { return precision(dtype).largest; }

bool overflows(int dtype, double found, double exact, double bound) {
    return dipu::overflows(found, exact, bound, precision(dtype));
}
}

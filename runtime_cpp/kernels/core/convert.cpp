// The table of conversions between dtypes, compiled once for all kernels.
#include "convert.h"

#include "dtype.h"

namespace diopi::kernels {
namespace {

template <class From, class To>
void convert_run(const void* source, int64_t source_stride, void* target, int64_t target_stride, int64_t count) {
    const From* from = static_cast<const From*>(source);
    To* to = static_cast<To*>(target);
    if (source_stride == 1 && target_stride == 1) {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; ++i) to[i] = cast<To>(from[i]);
    } else if (source_stride == 0 && target_stride == 1) {
        const To value = cast<To>(from[0]);
        for (int64_t i = 0; i < count; ++i) to[i] = value;
    } else {
        for (int64_t i = 0; i < count; ++i) to[i * target_stride] = cast<To>(from[i * source_stride]);
    }
}

template <class From, class... To>
ConvertRun converter_from(Types<To...>, diopiDtype_t to) {
    ConvertRun found = nullptr;
    static_cast<void>(((to == dtype_of<To> ? (found = &convert_run<From, To>, true) : false) || ...));
    return found;
}

}  // namespace

ConvertRun converter(diopiDtype_t from, diopiDtype_t to) {
    ConvertRun found = nullptr;
    dispatch<Storable>(from, [&](auto type) { found = converter_from<typename decltype(type)::type>(Storable{}, to); });
    if (found == nullptr) fail_dtype(to);
    return found;
}

}  // namespace diopi::kernels

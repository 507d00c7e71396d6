// The table of conversions between dtypes, compiled once for all kernels.
#include "convert.h"

#include "core/dtype.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace diopi::kernels {
namespace {

// Converts a first part that the processor has an instruction for, and gives how many elements that were.
template <class From, class To>
int64_t convert_by_instruction(const From*, To*, int64_t) {
    return 0;
}

#if defined(__F16C__)
inline int64_t convert_by_instruction(const Half* from, float* to, int64_t count) {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
    return i;
}

inline int64_t convert_by_instruction(const float* from, Half* to, int64_t count) {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), halves);
    }
    return i;
}
#endif

template <class From, class To>
void convert_run(const void* source, int64_t source_stride, void* target, int64_t target_stride, int64_t count) {
    const From* from = static_cast<const From*>(source);
    To* to = static_cast<To*>(target);
    if (source_stride == 1 && target_stride == 1) {
        DIOPI_IVDEP
        for (int64_t i = convert_by_instruction(from, to, count); i < count; ++i) to[i] = cast<To>(from[i]);
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

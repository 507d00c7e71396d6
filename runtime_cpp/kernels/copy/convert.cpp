// The table of conversions between dtypes, compiled once for all kernels.
#include "convert.h"

#include <algorithm>

#include "core/dtype.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace diopi::kernels {
namespace {

// Converts a first part, or all, where the processor has an instruction, and gives how many elements that were.
template <class From, class To>
int64_t convert_by_instruction(const From*, To*, int64_t) {
    return 0;
}

#if defined(__F16C__)
#if defined(__AVX512F__)
constexpr int64_t kVector = 16;
constexpr __mmask16 kAll = 0xffff;  // g++ warns of the forms without a mask
inline void convert_vector(const Half* from, float* to) {
    _mm512_storeu_ps(to, _mm512_maskz_cvtph_ps(kAll, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
}
inline void convert_vector(const float* from, Half* to) {
    const __m256i halves = _mm512_maskz_cvtps_ph(kAll, _mm512_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), halves);
}
#else
constexpr int64_t kVector = 8;
inline void convert_vector(const Half* from, float* to) {
    _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}
inline void convert_vector(const float* from, Half* to) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), halves);
}
#endif

// The last vector of a run overlaps with the one before; a shorter run goes through buffers.
template <class From, class To>
int64_t convert_by_vectors(const From* from, To* to, int64_t count) {
    if (count < kVector) {
        From all[kVector] = {};
        To results[kVector];
        std::copy_n(from, count, all);
        convert_vector(all, results);
        std::copy_n(results, count, to);
        return count;
    }
    for (int64_t i = 0; i < count - kVector; i += kVector) convert_vector(from + i, to + i);
    convert_vector(from + count - kVector, to + count - kVector);
    return count;
}

inline int64_t convert_by_instruction(const Half* from, float* to, int64_t count) {
    return convert_by_vectors(from, to, count);
}
inline int64_t convert_by_instruction(const float* from, Half* to, int64_t count) {
    return convert_by_vectors(from, to, count);
}
#endif

template <class From, class To>
void convert_run(const void* source, int64_t source_stride, void* target, int64_t target_stride, int64_t count) {
    const From* from = static_cast<const From*>(source);
    To* to = static_cast<To*>(target);
    if (source_stride == 1 && target_stride == 1) {
        DIOPI_VECTOR_LOOP
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

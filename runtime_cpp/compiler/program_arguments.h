// How a compiled program spells the arguments of library functions and the operands of its kernels.
#ifndef DIOPI_COMPILER_PROGRAM_ARGUMENTS_H_
#define DIOPI_COMPILER_PROGRAM_ARGUMENTS_H_

#include <type_traits>

#include "core/launcher.h"
#include "program_abi.h"

namespace diopi::compiled {

// The address that kernels use for what lies `bytes` behind the start of a root.
inline void* address(const Run* run, int32_t root, int64_t bytes) {
    char* const start = run->roots[root];
    return start == nullptr ? nullptr : launch::device_address(start + bytes);
}

template <class T>
inline diopiScalar_t scalar(T value) {
    diopiScalar_t result{};
    if constexpr (std::is_floating_point_v<T>) {
        result.stype = diopi_dtype_float64;
        result.fval = value;
    } else {
        result.stype = std::is_same_v<T, bool> ? diopi_dtype_bool : diopi_dtype_int64;
        result.ival = static_cast<int64_t>(value);
    }
    return result;
}

}  // namespace diopi::compiled

#endif  // DIOPI_COMPILER_PROGRAM_ARGUMENTS_H_

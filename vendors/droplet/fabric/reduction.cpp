// The loops over elements, one for each type.
#include "reduction.h"

#include <type_traits>

#include "kernels/core/half.h"

namespace droplet {
namespace {

using diopi::kernels::BFloat16;
using diopi::kernels::Half;

// What a type is computed in: sums of short numbers need not fit the type before they are divided.
template <class T>
struct Computing {
    using type =
        std::conditional_t<std::is_integral_v<T>, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>, float>;
};
template <>
struct Computing<double> {
    using type = double;
};

// Whole numbers wrap around.
template <class C>
C combined(tclRedOp_t op, C a, C b) {
    switch (op) {
        case tclProd:
            if constexpr (std::is_integral_v<C>) {
                return static_cast<C>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
            } else {
                return a * b;
            }
        case tclMax: return a != a || a > b ? a : b;  // a NaN stays, whoever has it
        case tclMin: return a != a || a < b ? a : b;
        default:
            if constexpr (std::is_integral_v<C>) {
                return static_cast<C>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
            } else {
                return a + b;
            }
    }
}

template <class T>
void reduce_typed(const std::vector<const void*>& inputs, void* result, size_t count, const Reduction& reduction) {
    using C = typename Computing<T>::type;
    const auto value = [&](const void* input, size_t at) {
        const C loaded = static_cast<C>(static_cast<const T*>(input)[at]);
        return reduction.has_factor ? static_cast<C>(loaded * static_cast<C>(reduction.factor)) : loaded;
    };
    for (size_t at = 0; at < count; ++at) {
        C sum = value(inputs[0], at);
        for (size_t rank = 1; rank < inputs.size(); ++rank) sum = combined(reduction.op, sum, value(inputs[rank], at));
        if (reduction.op == tclAvg) sum = static_cast<C>(sum / static_cast<C>(inputs.size()));
        static_cast<T*>(result)[at] = static_cast<T>(sum);
    }
}

}  // namespace

size_t size_of(tclDataType_t type) {
    switch (type) {
        case tclInt8:
        case tclUint8: return 1;
        case tclInt16:
        case tclUint16:
        case tclFloat16:
        case tclBfloat16: return 2;
        case tclInt32:
        case tclUint32:
        case tclFloat32: return 4;
        case tclInt64:
        case tclUint64:
        case tclFloat64: return 8;
    }
    return 0;
}

void reduce(const std::vector<const void*>& inputs, void* result, size_t count, tclDataType_t type,
            const Reduction& reduction) {
    switch (type) {
        case tclInt8: return reduce_typed<int8_t>(inputs, result, count, reduction);
        case tclUint8: return reduce_typed<uint8_t>(inputs, result, count, reduction);
        case tclInt16: return reduce_typed<int16_t>(inputs, result, count, reduction);
        case tclUint16: return reduce_typed<uint16_t>(inputs, result, count, reduction);
        case tclInt32: return reduce_typed<int32_t>(inputs, result, count, reduction);
        case tclUint32: return reduce_typed<uint32_t>(inputs, result, count, reduction);
        case tclInt64: return reduce_typed<int64_t>(inputs, result, count, reduction);
        case tclUint64: return reduce_typed<uint64_t>(inputs, result, count, reduction);
        case tclFloat16: return reduce_typed<Half>(inputs, result, count, reduction);
        case tclFloat32: return reduce_typed<float>(inputs, result, count, reduction);
        case tclFloat64: return reduce_typed<double>(inputs, result, count, reduction);
        case tclBfloat16: return reduce_typed<BFloat16>(inputs, result, count, reduction);
    }
}

}  // namespace droplet

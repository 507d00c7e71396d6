// Values as unsigned numbers of their width that have the same order, which is what radix sorts know.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/dtype.h"
#include "core/host_device.h"

namespace diopi::kernels {

template <class T>
DIOPI_HD inline bool is_nan(T value) {
    if constexpr (is_float<T>) {
        const auto number = cast<ComputeType<T>>(value);
        return number != number;
    } else {
        static_cast<void>(value);
        return false;
    }
}

// clang-format off
template <int kBytes> struct UnsignedOf;
template <> struct UnsignedOf<1> { using type = uint8_t; };
template <> struct UnsignedOf<2> { using type = uint16_t; };
template <> struct UnsignedOf<4> { using type = uint32_t; };
template <> struct UnsignedOf<8> { using type = uint64_t; };
// clang-format on

template <class T>
using SortKey = typename UnsignedOf<sizeof(T)>::type;

// NaN is the greatest value, whatever its bits, and -0 equals +0, so that a stable sort leaves both in place.
template <class T>
DIOPI_HD inline SortKey<T> sort_key(T value, bool descending) {
    using Key = SortKey<T>;
    constexpr auto sign = static_cast<Key>(Key(1) << (8 * sizeof(Key) - 1));
    Key key = bits_as<Key>(value);
    if constexpr (is_float<T>) {
        if (is_nan(value)) key = static_cast<Key>(~sign);
        if (key == sign) key = 0;
        key = static_cast<Key>((key & sign) != 0 ? ~key : key | sign);
    } else if constexpr (std::is_signed_v<T>) {
        key = static_cast<Key>(key ^ sign);
    }
    return descending ? static_cast<Key>(~key) : key;
}

}  // namespace diopi::kernels

// The check of integers before a narrowing cast, on a copy of the tensor in host memory.
#include "range.h"

#include <diopi/device.h>
#include <diopi/dtypes.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

#include "describe.h"
#include "layout.h"

// The vendor's device functions of the classic form; a library of the newer form has a table instead.
extern "C" {
DIOPI_ATTR_WEAK int32_t device_memcpy_d2h_async(diopiStreamHandle_t stream, void* dst, const void* src, uint64_t bytes);
DIOPI_ATTR_WEAK int32_t device_synchronize_stream(diopiStreamHandle_t stream);
}

namespace diopi::adaptor {

namespace {

// The integers that a dtype holds without change.
struct Range {
    int64_t least;
    uint64_t greatest;
};

template <typename T>
constexpr Range of() {
    return {static_cast<int64_t>(std::numeric_limits<T>::min()), static_cast<uint64_t>(std::numeric_limits<T>::max())};
}

// Floats hold every integer up to the power of two that their significand reaches.
constexpr Range of_float(int bits) { return {-(int64_t{1} << bits), uint64_t{1} << bits}; }

constexpr Range kAll = {std::numeric_limits<int64_t>::min(), std::numeric_limits<uint64_t>::max()};

Range range_of(diopiDtype_t dtype) {
    switch (dtype) {
#define DIOPI_INTEGER_RANGE(name, type) \
    case diopi_dtype_##name: return of<type>();
#define DIOPI_FLOAT_RANGE(name, digits, exponent) \
    case diopi_dtype_##name: return of_float(digits);
        DIOPI_FOR_EACH_INTEGER(DIOPI_INTEGER_RANGE)
        DIOPI_FOR_EACH_FLOAT(DIOPI_FLOAT_RANGE)
#undef DIOPI_INTEGER_RANGE
#undef DIOPI_FLOAT_RANGE
        default: return kAll;  // bool asks for truth; complex numbers are no target of integers
    }
}

bool is_integer(diopiDtype_t dtype) {
#define DIOPI_IS(name, type) dtype == diopi_dtype_##name ||
    return DIOPI_FOR_EACH_INTEGER(DIOPI_IS) false;
#undef DIOPI_IS
}

bool contains(const Range& outer, const Range& inner) {
    return outer.least <= inner.least && inner.greatest <= outer.greatest;
}

diopiError_t copy_to_host(diopiContextHandle_t ctx, const void* from, std::vector<char>& to) {
    diopiStreamHandle_t stream = nullptr;
    const diopiError_t status = diopiGetStream(ctx, &stream);
    if (status != diopiSuccess) return status;
    const diopiDeviceApi_t* const table = diopiGetDeviceApi == nullptr ? nullptr : diopiGetDeviceApi();
    const auto copy = table == nullptr ? device_memcpy_d2h_async : table->memcpy_d2h_async;
    const auto wait = table == nullptr ? device_synchronize_stream : table->sync_stream;
    if (copy == nullptr || wait == nullptr) return diopiNoRegisteredDevice2HostMemoryCopyFunction;
    const bool copied = copy(stream, to.data(), from, to.size()) == 0 && wait(stream) == 0;
    return copied ? diopiSuccess : diopiErrorOccurred;
}

// An element of a tensor, as far as any integer reaches.
struct Integer {
    bool negative;
    int64_t value;           // if negative
    uint64_t magnitude;      // if not
    bool in(const Range& range) const { return negative ? value >= range.least : magnitude <= range.greatest; }
    std::string text() const { return negative ? std::to_string(value) : std::to_string(magnitude); }
};

template <typename T>
Integer read(const char* place) {
    T value;
    std::memcpy(&value, place, sizeof value);
    if constexpr (std::is_signed_v<T>) {
        if (value < 0) return {true, value, 0};
    }
    return {false, 0, static_cast<uint64_t>(value)};
}

Integer read(const char* place, diopiDtype_t dtype) {
    switch (dtype) {
#define DIOPI_READ(name, type) \
    case diopi_dtype_##name: return read<type>(place);
        DIOPI_FOR_EACH_INTEGER(DIOPI_READ)
#undef DIOPI_READ
        default: return {false, 0, 0};  // callers ask for integers alone
    }
}

// e.g. "[1, 2]"
std::string text(const std::array<int64_t, kMaxRank>& index, int64_t rank) {
    std::string joined = "[";
    for (int64_t d = 0; d < rank; ++d) joined += (d == 0 ? "" : ", ") + std::to_string(index[d]);
    return joined + "]";
}

// Goes on to the next index in row-major order; false after the last.
bool next(std::array<int64_t, kMaxRank>& index, const Description& tensor) {
    for (int64_t d = tensor.rank - 1; d >= 0; --d) {
        if (++index[d] < tensor.sizes[d]) return true;
        index[d] = 0;
    }
    return false;
}

diopiError_t check(diopiContextHandle_t ctx, const char* function, const char* parameter, const Description& tensor,
                   const void* data, diopiDtype_t target) {
    const Range range = range_of(target);
    const int64_t bytes = diopiDtypeBytes(tensor.dtype);
    int64_t last = 0;
    for (int64_t d = 0; d < tensor.rank; ++d) {
        if (tensor.sizes[d] == 0) return diopiSuccess;
        last += (tensor.sizes[d] - 1) * tensor.strides[d];
    }
    std::vector<char> elements(static_cast<size_t>((last + 1) * bytes));
    const diopiError_t status = copy_to_host(ctx, data, elements);
    if (status != diopiSuccess) {
        std::fprintf(stderr,
                     "diopi adaptor: %s: the range of '%s' cannot be checked: the vendor gives no copy to the host\n",
                     function, parameter);
        return status;
    }
    std::array<int64_t, kMaxRank> index{};
    do {
        int64_t offset = 0;
        for (int64_t d = 0; d < tensor.rank; ++d) offset += index[d] * tensor.strides[d];
        const Integer element = read(elements.data() + offset * bytes, tensor.dtype);
        if (element.in(range)) continue;
        std::fprintf(
            stderr,
            "diopi adaptor: %s: element %s of '%s' is %s, which %s cannot hold (convert_config.yaml casts %s to it)\n",
            function, text(index, tensor.rank).c_str(), parameter, element.text().c_str(), diopiDtypeName(target),
            diopiDtypeName(tensor.dtype));
        return diopiErrorOccurred;
    } while (next(index, tensor));
    return diopiSuccess;
}

}  // namespace

bool checking_range() noexcept {
    static const bool on = [] {
        const char* const wanted = std::getenv("DIOPI_ADAPTOR_CHECK_RANGE");
        return wanted != nullptr && std::strcmp(wanted, "1") == 0;
    }();
    return on;
}

diopiError_t check_range(diopiContextHandle_t ctx, const char* function, const char* parameter,
                         diopiConstTensorHandle_t tensor, diopiDtype_t target) noexcept {
    Description description;
    const void* data = nullptr;
    diopiError_t status = describe(tensor, &description);
    if (status == diopiSuccess) status = diopiGetTensorDataConst(tensor, &data);
    if (status != diopiSuccess) return status;
    if (!is_integer(description.dtype) || contains(range_of(target), range_of(description.dtype))) return diopiSuccess;
    if (description.rank > kMaxRank) return diopiErrorOccurred;
    try {
        return check(ctx, function, parameter, description, data, target);
    } catch (const std::bad_alloc&) {
        return diopiErrorOccurred;
    }
}

}  // namespace diopi::adaptor

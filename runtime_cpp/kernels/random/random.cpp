// Random elements: uniform, normal, Bernoulli, whole numbers and dropout. The same seed gives the same values on every
// device.
#include <diopi/diopirt.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "copy/convert.h"
#include "copy/copy.h"
#include "core/scalar.h"
#include "core/team.h"
#include "math/philox.h"
#include "space/bounds.h"
#include "space/index.h"
#include "space/packed.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// A number, or a tensor that broadcasts to the output.
struct Parameter {
    TensorView tensor;
    Space<1> space;
    double number;

    static Parameter of(double value) { return {undefined_view(), Space<1>{}, value}; }
    static Parameter of(ConstTensor handle, const TensorView& out) {
        const TensorView tensor = required_view(handle, "a parameter of a distribution");
        require_storable(tensor);
        const TensorView* const operands[1] = {&tensor};
        return {tensor, broadcast_space<1>(out, operands), 0.0};
    }

    DIOPI_HD double get(int64_t i) const {
        return tensor.defined() ? load_as<double>(tensor, space.offset(i)) : number;
    }
};

// out[i] = draw(bits, which, first parameter[i], second parameter[i]), in row-major order of the elements.
template <class Draw>
struct DrawTask {
    static constexpr int64_t kPairs = 128;  // so far apart lie two that share a counter: loops and warps stay whole
    static constexpr int64_t kPiece = 2 * kPairs;

    Space<1> space;
    TensorView out;
    ReplayedStream stream;
    Draw draw;
    Parameter first, second;

    static int64_t calls(int64_t numel) { return (numel + kPiece - 1) / kPiece * (Team::kAlone ? 1 : kPairs); }

#if defined(DIOPI_LAUNCHER_HAS_TEAMS)
    DIOPI_HD void operator()(int64_t pair) const {
        const RandomBits bits = stream.draw(pair);
        for (int64_t which = 0, i = pair / kPairs * kPairs + pair; which < 2 && i < out.numel; ++which, i += kPairs)
            store_as(out, space.offset(i), draw(bits, which, first.get(i), second.get(i)));
    }
#else
    void operator()(int64_t piece) const {
        const int64_t begin = piece * kPiece, count = std::min(out.numel - begin, kPiece);
        const int64_t pairs = std::min(count, kPairs);
        double firsts[kPiece] = {}, seconds[kPiece] = {};
        typename Draw::Number numbers[kPiece];
        read(first, begin, count, firsts);
        read(second, begin, count, seconds);
        const Draw drawn = draw;
        const RandomStream bits = stream.now();
        DIOPI_VECTOR_LOOP
        for (int64_t k = 0; k < pairs; ++k) {
            const RandomBits pair = bits.draw(begin / 2 + k);
            numbers[k] = drawn(pair, 0, firsts[k], seconds[k]);
            numbers[k + kPairs] = drawn(pair, 1, firsts[k + kPairs], seconds[k + kPairs]);
        }
        if (space.contiguous()) {
            const ConvertRun convert = converter(dtype_of<typename Draw::Number>, out.dtype);
            convert(numbers, 1, out.as<char>() + begin * diopiDtypeBytes(out.dtype), 1, count);
        } else {
            for (int64_t k = 0; k < count; ++k) store_as(out, space.offset(begin + k), numbers[k]);
        }
    }

    static void read(const Parameter& parameter, int64_t begin, int64_t count, double* values) {
        const TensorView& tensor = parameter.tensor;
        if (tensor.defined() && parameter.space.contiguous()) {
            const void* from = tensor.as<char>() + begin * diopiDtypeBytes(tensor.dtype);
            converter(tensor.dtype, diopi_dtype_float64)(from, 1, values, 1, count);
        } else {
            for (int64_t k = 0; k < count; ++k) values[k] = parameter.get(begin + k);
        }
    }
#endif
};

template <class Draw>
void draw_elements(Context ctx, const TensorView& out, Generator generator, const Draw& draw,
                   const Parameter& first = Parameter::of(0.0), const Parameter& second = Parameter::of(0.0)) {
    require_storable(out);
    const ReplayedStream stream = next_stream(ctx, generator);
    for_each(ctx, DrawTask<Draw>::calls(out.numel), DrawTask<Draw>{space_of(out), out, stream, draw, first, second});
}

struct UniformDraw {
    using Number = double;
    double from;
    double to;
    diopiDtype_t dtype;

    DIOPI_HD double operator()(const RandomBits& bits, int64_t which, double, double) const {
        const double value = from + unit_interval(bits.half(which)) * (to - from);
        return rounded(value) >= to ? from : value;  // rounding to the output's dtype must not reach the open end
    }

    DIOPI_HD double rounded(double value) const {
        switch (dtype) {
            case diopi_dtype_float16: return cast<double>(cast<Half>(value));
            case diopi_dtype_bfloat16: return cast<double>(cast<BFloat16>(value));
            case diopi_dtype_float32: return static_cast<double>(static_cast<float>(value));
            default: return value;
        }
    }
};

struct NormalDraw {
    using Number = double;
    DIOPI_HD double operator()(const RandomBits& bits, int64_t which, double mean, double std) const {
        return mean + std * standard_normal(bits, which);
    }
};

struct IsProbability {
    template <class T>
    DIOPI_HD bool operator()(T p) const {
        return cast<double>(p) >= 0 && cast<double>(p) <= 1;
    }
};

struct BernoulliDraw {
    using Number = int64_t;
    DIOPI_HD int64_t operator()(const RandomBits& bits, int64_t which, double probability, double) const {
        require_in_kernel(IsProbability{}(probability), "a probability is between 0 and 1");
        return unit_interval(bits.half(which)) < probability ? 1 : 0;
    }
};

struct IntegerDraw {
    using Number = int64_t;
    int64_t from;
    uint64_t range;  // zero: all 2^64 values
    DIOPI_HD int64_t operator()(const RandomBits& bits, int64_t which, double, double) const {
        const uint64_t rest = range == 0 ? bits.half(which) : bits.half(which) % range;
        return static_cast<int64_t>(static_cast<uint64_t>(from) + rest);
    }
};

// How many whole numbers from zero on a dtype holds without a gap; zero for all 2^64.
uint64_t exact_range(diopiDtype_t dtype) {
    switch (dtype) {
        case diopi_dtype_bool: return 2;
        case diopi_dtype_uint8: return 1u << 8;
        case diopi_dtype_int8: return 1u << 7;
        case diopi_dtype_int16: return 1u << 15;
        case diopi_dtype_int32: return uint64_t{1} << 31;
        case diopi_dtype_float16: return (1u << 11) + 1;
        case diopi_dtype_bfloat16: return (1u << 8) + 1;
        case diopi_dtype_float32: return (1u << 24) + 1;
        case diopi_dtype_float64: return (uint64_t{1} << 53) + 1;
        default: return uint64_t{1} << 63;
    }
}

void draw_normal(Context ctx, Tensor out, ConstTensor mean, double mean_number, ConstTensor std, double std_number,
                 Generator generator) {
    const TensorView y = required_view(out, "out");
    require(std != nullptr || std_number >= 0.0, "a standard deviation is not negative, as %g is", std_number);
    const Parameter center = mean == nullptr ? Parameter::of(mean_number) : Parameter::of(mean, y);
    const Parameter width = std == nullptr ? Parameter::of(std_number) : Parameter::of(std, y);
    draw_elements(ctx, y, generator, NormalDraw{}, center, width);
}

struct DropoutTask {
    Space<3> space;  // out, mask, input
    TensorView out, mask, input;
    ReplayedStream stream;
    uint64_t dropped;  // as of dropped_words()
    double scale;

    DIOPI_HD void operator()(int64_t i) const {
        const Offsets<3> at = space.offsets(i);
        const bool keep = stream.word(i) >= dropped;
        store_as(mask, at.at[1], keep);
        store_as(out, at.at[0], keep ? load_as<double>(input, at.at[2]) * scale : 0.0);
    }
};

// The same of whole packs of elements that lie side by side.
template <class T>
struct PackedDropoutTask {
    static constexpr int kWidth = 8, kWords = RandomBits::kWords, kDraws = kWidth / kWords;
    using Number = std::conditional_t<is_half<T>, float, double>;

    T* out;
    bool* mask;
    const T* input;
    ReplayedStream stream;
    uint64_t dropped;
    double scale;

    DIOPI_HD void operator()(int64_t pack) const {
        const RandomStream now = stream.now();
        const auto values = load_pack<T, kWidth>(input + pack * kWidth);
        Pack<bool, kWidth> kept;
        Pack<T, kWidth> results;
        RandomBits draws[kDraws];
        DIOPI_UNROLL
        for (int d = 0; d < kDraws; ++d) draws[d] = now.draw(pack * kDraws + d);
        DIOPI_UNROLL
        for (int k = 0; k < kWidth; ++k) {
            kept.at[k] = draws[k / kWords].word(k % kWords) >= dropped;
            results.at[k] = cast<T>(kept.at[k] ? cast<Number>(values.at[k]) * static_cast<Number>(scale) : Number{0});
        }
        store_pack<bool, kWidth>(mask + pack * kWidth, kept);
        store_pack<T, kWidth>(out + pack * kWidth, results);
    }
};

diopiError_t dropout(Context ctx, ConstTensor out, Tensor mask, ConstTensor input, double p, bool train,
                     Generator generator) {
    return guarded([&] {
        const TensorView operands[3] = {required_view(out, "out"), required_view(mask, "mask"),
                                        required_view(input, "input")};
        require(IsProbability{}(p), "a probability is between 0 and 1, which %g is not", p);
        for (const TensorView& operand : operands) require_storable(operand);
        if (!train) {
            if (out != input) copy_elements(ctx, operands[0], operands[2]);
            fill_elements(ctx, operands[1], integer_scalar(1));
            return;
        }
        const ReplayedStream stream = next_stream(ctx, generator);
        const auto dropped = dropped_words(p);
        const double scale = p < 1.0 ? 1.0 / (1.0 - p) : 0.0;
        const TensorView &y = operands[0], &kept = operands[1], &x = operands[2];
        const auto in_packs = [&](const TensorView& tensor) {
            return tensor.contiguous() && tensor.same_sizes(y) && reinterpret_cast<uintptr_t>(tensor.data) % 16 == 0;
        };
        if (is_in<Float>(y.dtype) && x.dtype == y.dtype && kept.dtype == diopi_dtype_bool && y.numel % 8 == 0 &&
            std::all_of(operands, operands + 3, in_packs)) {
            return dispatch<Float>(y.dtype, [&](auto type) {
                using T = typename decltype(type)::type;
                for_each(ctx, y.numel / PackedDropoutTask<T>::kWidth,
                         PackedDropoutTask<T>{y.as<T>(), kept.as<bool>(), x.as<T>(), stream, dropped, scale});
            });
        }
        for_each(ctx, y.numel, DropoutTask{broadcast_space<3>(y, operands), y, kept, x, stream, dropped, scale});
    });
}

}  // namespace

diopiError_t diopiUniformInp(Context ctx, Tensor inout, double from, double to, Generator generator) {
    return guarded([&] {
        const TensorView x = required_view(inout, "inout");
        require(from <= to, "a range from %g to %g is empty", from, to);
        draw_elements(ctx, x, generator, UniformDraw{from, to, x.dtype});
    });
}

diopiError_t diopiNormal(Context ctx, Tensor out, double mean, double std, Generator generator) {
    return guarded([&] { draw_normal(ctx, out, nullptr, mean, nullptr, std, generator); });
}

diopiError_t diopiNormalInp(Context ctx, Tensor inout, double mean, double std, Generator generator) {
    return guarded([&] { draw_normal(ctx, inout, nullptr, mean, nullptr, std, generator); });
}

diopiError_t diopiNormalTensorScalar(Context ctx, Tensor out, ConstTensor mean, double std, Generator generator) {
    return guarded([&] { draw_normal(ctx, out, mean, 0.0, nullptr, std, generator); });
}

diopiError_t diopiNormalScalarTensor(Context ctx, Tensor out, double mean, ConstTensor std, Generator generator) {
    return guarded([&] { draw_normal(ctx, out, nullptr, mean, std, 0.0, generator); });
}

diopiError_t diopiNormalTensor(Context ctx, Tensor out, ConstTensor mean, ConstTensor std, Generator generator) {
    return guarded([&] { draw_normal(ctx, out, mean, 0.0, std, 0.0, generator); });
}

diopiError_t diopiBernoulli(Context ctx, Tensor out, ConstTensor input, Generator generator) {
    return guarded([&] {
        const TensorView y = required_view(out, "out"), p = required_view(input, "input");
        if (diopi::launch::kSynchronous && p.numel > 0)
            dispatch<Float>(p.dtype, [&](auto type) {
                const auto outside = first_outside<typename decltype(type)::type>(ctx, p, IsProbability{});
                require(outside.found == 0, "a probability is between 0 and 1, which %g is not",
                        cast<double>(outside.element));
            });
        draw_elements(ctx, y, generator, BernoulliDraw{}, Parameter::of(input, y));
    });
}

diopiError_t diopiBernoulliInp(Context ctx, Tensor inout, Generator generator) {
    return impl::portable::diopiBernoulli(ctx, inout, inout, generator);
}

diopiError_t diopiBernoulliScalar(Context ctx, Tensor out, double p, Generator generator) {
    return guarded([&] {
        require(IsProbability{}(p), "a probability is between 0 and 1, which %g is not", p);
        draw_elements(ctx, required_view(out, "out"), generator, BernoulliDraw{}, Parameter::of(p));
    });
}

diopiError_t diopiRandomInp(Context ctx, Tensor inout, int64_t from, const int64_t* to, Generator generator) {
    return guarded([&] {
        const TensorView x = required_view(inout, "inout");
        uint64_t range = exact_range(x.dtype);
        if (to != nullptr) {
            require(from < *to, "a range from %lld to %lld is empty", from, *to);
            range = static_cast<uint64_t>(*to) - static_cast<uint64_t>(from);
        } else {
            range -= static_cast<uint64_t>(from);  // wraps to all values for the smallest `from`
        }
        draw_elements(ctx, x, generator, IntegerDraw{from, range});
    });
}

diopiError_t diopiDropout(Context ctx, Tensor out, Tensor mask, ConstTensor input, double p, bool train,
                          Generator generator) {
    return dropout(ctx, out, mask, input, p, train, generator);
}

diopiError_t diopiDropoutInp(Context ctx, Tensor input, Tensor mask, double p, bool train, Generator generator) {
    return dropout(ctx, input, mask, input, p, train, generator);
}

}  // namespace impl::portable

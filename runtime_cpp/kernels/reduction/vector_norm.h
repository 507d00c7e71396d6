// The norm of order p of a vector, and its derivative.
#pragma once

#include "core/tensor.h"
#include "math/math.h"
#include "reduce.h"

namespace diopi::kernels {

enum class NormKind { count, absolute, square, largest, smallest, power };

template <NormKind kind>
struct Constant {
    DIOPI_HD constexpr operator NormKind() const { return kind; }
};

// Kind: NormKind, or a Constant of one, whose loops are then free of choices.
template <class Kind>
struct KindOfNormFold {
    using State = double;
    Kind kind;
    double p;

    DIOPI_HD State start() const { return kind == NormKind::smallest ? math::infinity<double> : 0.0; }
    DIOPI_HD State step(State state, double value) const {
        const double size = math::abs(value);
        switch (kind) {
            case NormKind::count: return state + (size != 0.0 ? 1.0 : 0.0);
            case NormKind::absolute: return state + size;
            case NormKind::square: return state + size * size;
            case NormKind::power: return state + math::pow(size, p);
            default: return join(state, size);
        }
    }
    DIOPI_HD State join(State a, State b) const {
        if (kind == NormKind::largest) return math::max(a, b);
        if (kind == NormKind::smallest) return math::min(a, b);
        return a + b;
    }
    DIOPI_HD double finish(State state, int64_t) const {
        if (kind == NormKind::square) return math::sqrt(state);
        return kind == NormKind::power ? math::pow(state, 1.0 / p) : state;
    }
};

using NormFold = KindOfNormFold<NormKind>;

inline NormFold norm_fold(double p) {
    if (p == 0.0) return {NormKind::count, p};
    if (p == 1.0) return {NormKind::absolute, p};
    if (p == 2.0) return {NormKind::square, p};
    if (math::isinf(p)) return {p > 0 ? NormKind::largest : NormKind::smallest, p};
    return {NormKind::power, p};
}

// The derivative of the norm by one of its elements; where several are the largest or smallest, they share it.
DIOPI_HD inline double norm_slope(const NormFold& fold, double value, double norm) {
    const double direction = math::sign(value);
    switch (fold.kind) {
        case NormKind::count: return 0.0;
        case NormKind::absolute: return direction;
        case NormKind::square: return norm == 0.0 ? 0.0 : value / norm;
        case NormKind::power:
            return value == 0.0 || norm == 0.0 ? 0.0 : direction * math::pow(math::abs(value) / norm, fold.p - 1.0);
        default: return math::abs(value) == norm ? direction : 0.0;
    }
}

// The norm of order p over `dims`; `out` keeps them with size one, or leaves them out.
void norm(Context ctx, const TensorView& out, const TensorView& input, double p, DimSet dims);

}  // namespace diopi::kernels

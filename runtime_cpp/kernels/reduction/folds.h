// Folds: what a reduction keeps while it reads, and what it makes of that in the end. Kernels and compiled programs share
// them.
//
// A fold has State, start(), step(State, value), join(State, State) and finish(State, count); pair(value, value) joins two
// values before a step, in their own type.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/dtype.h"
#include "math/math.h"

namespace diopi::kernels {

// Float sums are kept in double: exact enough for any size and any order. Integers wrap, as in torch.
template <class T>
struct SumFold {
    using State = std::conditional_t<is_float<T>, double, uint64_t>;
    using Result = std::conditional_t<is_float<T>, double, int64_t>;
    DIOPI_HD State start() const { return State(0); }
    DIOPI_HD State step(State sum, T value) const { return sum + cast<State>(value); }
    DIOPI_HD T pair(T a, T b) const { return a + b; }
    DIOPI_HD State join(State a, State b) const { return a + b; }
    DIOPI_HD Result finish(State sum, int64_t) const { return static_cast<Result>(sum); }
};

// Integers too have a mean, in an output that holds floats.
template <class T>
struct MeanFold : SumFold<double> {
    DIOPI_HD double step(double sum, T value) const { return sum + cast<double>(value); }
    DIOPI_HD T pair(T a, T b) const { return a + b; }
    DIOPI_HD double finish(double sum, int64_t count) const { return sum / static_cast<double>(count); }
};

template <class T>
struct ProductFold : SumFold<T> {
    using State = typename SumFold<T>::State;
    DIOPI_HD State start() const { return State(1); }
    DIOPI_HD State step(State product, T value) const { return product * cast<State>(value); }
    DIOPI_HD T pair(T a, T b) const { return a * b; }
    DIOPI_HD State join(State a, State b) const { return a * b; }
};

// What every element beats or equals.
template <class C, bool largest>
constexpr C weakest() {
    if constexpr (std::is_same_v<C, bool>) {
        return !largest;
    } else if constexpr (std::is_floating_point_v<C>) {
        return largest ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::infinity();
    } else {
        return largest ? std::numeric_limits<C>::lowest() : std::numeric_limits<C>::max();
    }
}

// A constant, so that device code calls no host function.
template <class C, bool largest>
constexpr C kWeakest = weakest<C, largest>();

// Flag: bool, or on a host a constant, whose loops are free of choices; device code would call its conversion, a host function.
template <class T, class Flag>
struct ExtremumFold {
    using State = ComputeType<T>;
    Flag largest;
    DIOPI_HD State start() const { return largest ? kWeakest<State, true> : kWeakest<State, false>; }
    DIOPI_HD State step(State best, T value) const { return join(best, static_cast<State>(value)); }
    DIOPI_HD State join(State best, State next) const {
        const bool better = largest ? next > best : next < best;
        return (better | diopi::math::isnan(next)) ? next : best;  // one choice, which the lanes turn into vector code
    }
    DIOPI_HD State pair(State a, State b) const { return join(a, b); }
    DIOPI_HD State finish(State best, int64_t) const { return best; }
};

}  // namespace diopi::kernels

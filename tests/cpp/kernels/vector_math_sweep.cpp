// Prints of each function of math/vector_math.h its largest error in ulp over all exponents, beside the C library in
// double, and how many infinities, NaN and zeros it gives where the library gives others.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "math/vector_math.h"

namespace math = diopi::math;

namespace {

struct Function {
    const char* name;
    void (*run)(const float* x, float* y, size_t count);
    double (*exact)(double x);
};

#define FUNCTION(name)                                                  \
    {#name,                                                             \
     [](const float* __restrict x, float* __restrict y, size_t count) { \
         for (size_t i = 0; i < count; ++i) y[i] = math::name(x[i]);    \
     },                                                                 \
     [](double x) { return std::name(x); }}

const Function kFunctions[] = {
    FUNCTION(exp),   FUNCTION(expm1), FUNCTION(log),  FUNCTION(log2), FUNCTION(log10), FUNCTION(log1p), FUNCTION(tanh),
    FUNCTION(sinh),  FUNCTION(cosh),  FUNCTION(asin), FUNCTION(acos), FUNCTION(atan),  FUNCTION(asinh), FUNCTION(acosh),
    FUNCTION(atanh), FUNCTION(erf),   FUNCTION(sin),  FUNCTION(cos),  FUNCTION(tan),
};

std::vector<float> samples() {
    std::vector<float> result;
    constexpr uint64_t step = 1021;  // odd, so that all digits of the fraction change
    for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += step)
        result.push_back(diopi::kernels::float_from_bits(static_cast<uint32_t>(bits)));
    constexpr float infinity = math::vector_detail::kInfinity;
    for (const float x : {0.0f, 1e-45f, 1.0f, 0.5f, 2.0f, 88.72283f, 88.7229f, 89.4f, 89.5f, 3.4028235e38f, infinity}) {
        result.push_back(x);
        result.push_back(-x);
    }
    return result;
}

// In units of the last place of the exact value; -1 where the two differ in kind.
double error(float found, double exact) {
    const float nearest = static_cast<float>(exact);
    if (std::isnan(nearest) || std::isnan(found)) return std::isnan(nearest) == std::isnan(found) ? 0 : -1;
    if (std::signbit(nearest) != std::signbit(found)) return -1;
    constexpr double beyond = 0x1p128;  // where the next float would be
    if (std::isinf(exact) || std::isinf(found)) {
        return std::isinf(nearest) == std::isinf(found) || std::fabs(exact) > beyond * (1 - 0x1p-24) ? 0 : -1;
    }
    if (std::isinf(nearest)) return std::fabs(exact) < beyond ? 1 : -1;
    const double unit = std::ldexp(1.0, nearest == 0 ? -149 : std::max(std::ilogb(nearest) - 23, -149));
    return std::fabs(static_cast<double>(found) - exact) / unit;
}

// How many functions of usual angles give other bits than those of any float.
int other_usual_bits(const std::vector<float>& all) {
    using diopi::kernels::bits_of_float;
    int other = 0;
    for (const float x : all) {
        if (!(std::fabs(x) < math::kNear)) continue;
        const math::Usual usual{x};
        other += bits_of_float(math::sin(x)) != bits_of_float(math::sin(usual)) ? 1 : 0;
        other += bits_of_float(math::cos(x)) != bits_of_float(math::cos(usual)) ? 1 : 0;
        other += bits_of_float(math::tan(x)) != bits_of_float(math::tan(usual)) ? 1 : 0;
    }
    return other;
}

}  // namespace

int main() {
    const std::vector<float> x = samples();
    std::vector<float> y(x.size());
    for (const Function& function : kFunctions) {
        function.run(x.data(), y.data(), x.size());
        double worst = 0;
        int wrong = 0;
        for (size_t i = 0; i < x.size(); ++i) {
            const double found = error(y[i], function.exact(x[i]));
            worst = std::max(worst, found);
            wrong += found < 0 ? 1 : 0;
        }
        std::printf("%s %.3f %d\n", function.name, worst, wrong);
    }
    std::printf("usual 0 %d\n", other_usual_bits(x));
    return 0;
}

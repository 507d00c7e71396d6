// Normalization of groups of elements, with arbitrary strides: their moments, their new values, their gradient.
#pragma once

#include "math/math.h"
#include "reduction/parts.h"
#include "space/access.h"
#include "space/rows.h"

namespace diopi::kernels {

// One statistic per row; callers may leave it out.
struct PerRow {
    TensorView tensor;
    Space<1> space;
    float* floats = nullptr;  // where they are floats side by side: without a choice of dtypes for each

    PerRow(ConstTensor handle, int64_t rows) : PerRow(view(handle), rows) {}
    PerRow(const TensorView& statistics, int64_t rows) : tensor(statistics) {
        if (!tensor.defined()) return;
        require(tensor.numel == rows, "a normalization has %lld rows, but %lld statistics", rows, tensor.numel);
        require_storable(tensor);
        space = space_of(tensor);
        if (tensor.dtype == diopi_dtype_float32 && space.contiguous()) floats = tensor.as<float>();
    }

    DIOPI_HD bool defined() const { return tensor.defined(); }
    DIOPI_HD double get(int64_t row) const { return floats != nullptr ? floats[row] : number(row); }
    DIOPI_HD void set(int64_t row, double value) const {
        if (floats != nullptr) floats[row] = static_cast<float>(value);
        if (floats == nullptr && tensor.defined()) set_number(row, value);
    }

private:
    DIOPI_HD_OUTLINED void set_number(int64_t row, double value) const { store_as(tensor, space.offset(row), value); }
    DIOPI_HD_OUTLINED double number(int64_t row) const { return load_as<double>(tensor, space.offset(row)); }
};

struct Moments {
    double mean;
    double variance;  // about the mean, over the count of elements
    double count;

    DIOPI_HD double scale(double eps) const { return 1.0 / math::sqrt(variance + eps); }
};

// The mean square of one operand of a group about `center`.
template <class Access, int N, class TeamOrAlone>
DIOPI_HD inline double mean_square(const Space<N>& inner, const Offsets<N>& base, int operand, const TensorView& values,
                                   const TeamOrAlone& team, double center) {
    const double squares =
        sum<Access>(inner, base, operand, values, team, [center](double x) { return (x - center) * (x - center); });
    return squares / static_cast<double>(inner.numel);
}

// Two passes: the mean first, so that nothing cancels. Without `centered` the mean counts as zero. Teams, for which
// memory is dearer, take one about the first element: its own deviation is in the variance, so that of n floats in
// double no more cancels than n roundings.
template <class Access, int N, class TeamOrAlone>
DIOPI_HD inline Moments moments(const Space<N>& inner, const Offsets<N>& base, int operand, const TensorView& values,
                                const TeamOrAlone& team, bool centered = true) {
    double mean = 0;
    if constexpr (!TeamOrAlone::kAlone && !std::is_same_v<typename Access::Compute, double>) {
        const auto count = static_cast<double>(inner.numel);
        if (centered) {
            const double origin = inner.numel > 0 ? Access::template load<double>(values, base.at[operand]) : 0;
            const auto sums = sum<Access>(inner, base, operand, values, team, [origin](double x) {
                return TwoSums<double>{x - origin, (x - origin) * (x - origin)};
            });
            mean = sums.first / count;
            const double variance = sums.second / count - mean * mean;
            return {origin + mean, variance < 0 ? 0 : variance, count};
        }
    }
    if (centered) {
        mean = sum<Access>(inner, base, operand, values, team, [](double x) { return x; });
        mean /= static_cast<double>(inner.numel);
    }
    return {mean, mean_square<Access>(inner, base, operand, values, team, mean), static_cast<double>(inner.numel)};
}

// Groups: Rows or a ReductionSpace, with `input` as the only operand of the inner space.
template <class Access, class Groups>
struct MomentsReduction {
    using State = Moments;

    Groups space;
    TensorView input;

    DIOPI_HD Moments start() const { return {0, 0, 0}; }
    // Squared deviations add up: those of each part about its own mean, and of the means about the common one.
    DIOPI_HD Moments join(const Moments& a, const Moments& b) const {
        if (a.count == 0 || b.count == 0) return a.count == 0 ? b : a;
        const double count = a.count + b.count, share = b.count / count, distance = b.mean - a.mean;
        return {(a.mean * a.count + b.mean * b.count) / count,
                a.variance * (1 - share) + b.variance * share + distance * distance * share * (1 - share), count};
    }
    DIOPI_HD Moments state(int64_t, const Part<1>& part, const Team& team) const {
        return moments<Access>(part.inner, part.base, 0, input, team);
    }

    using ColumnAccess = Access;
    std::array<TensorView, 1> column_operands() const { return {input}; }
    template <class T>
    using ColumnState = Moments;
    // About the first element of each column: a few hundred lose little in the sums that packs are added up in.
    template <class T, int width>
    DIOPI_HD_INLINED void column_states(int64_t column, const Stripe& rows, int64_t columns, Moments* states) const {
        using Sum = RowSum<T>;
        const T* const from = input.template as<T>() + column;
        const Pack<T, width> origin = load_pack<T, width>(from + rows.first * columns);
        Sum sums[width] = {}, squares[width] = {};
        for_each_pack({from}, rows, columns, [&](int64_t, const Pack<T, width>(&packs)[1]) {
            DIOPI_UNROLL
            for (int k = 0; k < width; ++k) {
                const Sum distance = cast<Sum>(packs[0].at[k]) - cast<Sum>(origin.at[k]);
                sums[k] += distance;
                squares[k] += distance * distance;
            }
        });
        const auto count = static_cast<double>(rows.count());
        DIOPI_UNROLL
        for (int k = 0; k < width; ++k) {
            const double mean = static_cast<double>(sums[k]) / count;
            const double variance = static_cast<double>(squares[k]) / count - mean * mean;
            states[k] = {cast<double>(origin.at[k]) + mean, variance < 0 ? 0 : variance, count};
        }
    }
};

static_assert(Team::kAlone || kReducesColumns<MomentsReduction<HalvesAccess, Rows<1>>>,
              "by packs where these are columns");

// Where the moments of the groups go; any may be undefined.
struct MomentTensors {
    TensorView mean = undefined_view();
    TensorView scale = undefined_view();  // one over the root of the variance and eps
};

// The moments of the groups of `input`; `dims` are the outer dimensions, one bit each.
void keep_moments(Context ctx, const TensorView& input, uint32_t dims, const MomentTensors& kept, double eps);

// Operands: out, input, weight, bias; the last two broadcast to the input, or are undefined. Without `centered` only
// the root mean square is divided by.
void normalize_groups(Context ctx, const TensorView (&operands)[4], uint32_t dims, bool centered,
                      const MomentTensors& kept, double eps);

// Operands: grad_input, input, weight, grad_output. `scale` is what one group's elements, centred or not, were
// multiplied by.
void propagate_groups(Context ctx, const TensorView (&operands)[4], uint32_t dims, bool centered, const PerRow& mean,
                      const PerRow& scale);

}  // namespace diopi::kernels

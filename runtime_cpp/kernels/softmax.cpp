// Softmax and its logarithm along a dimension, with their gradients.
#include <diopi/diopirt.h>

#include "core/access.h"
#include "core/common_dtype.h"
#include "core/lines.h"
#include "core/math.h"
#include "core/packed_rows.h"
#include "core/runs.h"
#include "core/strides.h"
#include "core/team.h"
#include "core/view.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

template <class Access, bool logarithm>
struct SoftmaxTask {
    using C = typename Access::Compute;

    Lines<2> lines;  // out, input
    TensorView out;
    TensorView input;

    DIOPI_HD void operator()(int64_t i, const Team& team = {}) const {
        const Offsets<2> at = lines.outer.offsets(i);
        if constexpr (Team::kAlone) {
            line(at, UnitStrides{}, team);
        } else {
            with_strides(lines.strides, [&](const auto& strides) {
                if (lines.count <= kHeld * team.size()) return held(at, strides, team);
                line(at, strides, team);
            });
        }
    }

    template <class Strides>
    DIOPI_HD void held(const Offsets<2>& at, const Strides& strides, const Team& team) const {
        const auto mine = stripe_of(team, lines.count);
        C values[kHeld];
        for (C& value : values) value = -math::infinity<C>;
        each_held(mine, [&](int slot, int64_t k) {
            values[slot] = Access::template load<C>(input, at.at[1] + k * strides[1]);
        });
        C largest = values[0];
        for (const C value : values) largest = Larger{}(largest, value);
        largest = team.reduce(largest, Larger{});
        double powers = 0;
        for (C& value : values) {
            value -= largest;
            const C power = math::exp(value);
            powers += power;
            if (!logarithm) value = power;
        }
        const C sum = static_cast<C>(team.reduce(powers, Plus{}));
        const C last = logarithm ? math::log(sum) : C(1) / sum;
        each_held(mine, [&](int slot, int64_t k) {
            Access::store(out, at.at[0] + k * strides[0], logarithm ? values[slot] - last : values[slot] * last);
        });
    }

    template <class Strides>
    DIOPI_FLATTEN DIOPI_HD void line(const Offsets<2>& at, const Strides& strides, const Team& team) const {
        const auto mine = stripe_of(team, lines.count);
        const auto target = [&](int64_t k) { return at.at[0] + k * strides[0]; };
        const auto element = [&](int64_t k) { return Access::template load<C>(input, at.at[1] + k * strides[1]); };
        // from the largest element on nothing overflows, whatever the inputs
        const C largest = team.reduce(largest_of_run<C>(mine, element), Larger{});
        const auto power = [&](int64_t k) { return math::exp(element(k) - largest); };
        // an output that keeps all digits holds the powers meanwhile, so that each is worked out once; for many threads
        // memory is dearer
        constexpr bool keeps = Access::kExact && !logarithm && Team::kAlone;
        if (keeps) each(mine, [&](int64_t k) { Access::store(out, target(k), power(k)); });
        const auto kept = [&](int64_t k) { return keeps ? Access::template load<C>(out, target(k)) : power(k); };
        const C sum = static_cast<C>(team.reduce(sum_of_run(mine, kept), Plus{}));
        const C last = logarithm ? math::log(sum) : C(1) / sum;
        each(mine, [&](int64_t k) {
            Access::store(out, target(k), logarithm ? element(k) - largest - last : kept(k) * last);
        });
    }
};

template <bool logarithm, class C>
DIOPI_HD inline C slope(C gradient, C result, C total) {
    return logarithm ? gradient - math::exp(result) * total : result * (gradient - total);
}

template <class Access, bool logarithm>
struct SoftmaxBackwardTask {
    using C = typename Access::Compute;

    Lines<3> lines;  // grad_input, grad_output, output
    TensorView grad_input;
    TensorView grad_output;
    TensorView output;

    DIOPI_HD void operator()(int64_t i, const Team& team = {}) const {
        const Offsets<3> at = lines.outer.offsets(i);
        if constexpr (Team::kAlone) {
            line(at, UnitStrides{}, team);
        } else {
            with_strides(lines.strides, [&](const auto& strides) {
                if (lines.count <= kHeld * team.size()) return held(at, strides, team);
                line(at, strides, team);
            });
        }
    }

    template <class Strides>
    DIOPI_HD void held(const Offsets<3>& at, const Strides& strides, const Team& team) const {
        const auto mine = stripe_of(team, lines.count);
        C gradients[kHeld], results[kHeld];
        double sum = 0;
        each_held(mine, [&](int slot, int64_t k) {
            gradients[slot] = Access::template load<C>(grad_output, at.at[1] + k * strides[1]);
            results[slot] = Access::template load<C>(output, at.at[2] + k * strides[2]);
        });
        each_held(mine, [&](int slot, int64_t) {
            sum += logarithm ? gradients[slot] : gradients[slot] * results[slot];
        });
        const C whole = static_cast<C>(team.reduce(sum, Plus{}));
        each_held(mine, [&](int slot, int64_t k) {
            Access::store(grad_input, at.at[0] + k * strides[0],
                          slope<logarithm>(gradients[slot], results[slot], whole));
        });
    }

    template <class Strides>
    DIOPI_FLATTEN DIOPI_HD void line(const Offsets<3>& at, const Strides& strides, const Team& team) const {
        const auto mine = stripe_of(team, lines.count);
        const auto gradient = [&](int64_t k) {
            return Access::template load<C>(grad_output, at.at[1] + k * strides[1]);
        };
        const auto result = [&](int64_t k) { return Access::template load<C>(output, at.at[2] + k * strides[2]); };
        const double sum =
            sum_of_run(mine, [&](int64_t k) { return logarithm ? gradient(k) : gradient(k) * result(k); });
        const C total = static_cast<C>(team.reduce(sum, Plus{}));
#pragma GCC ivdep
        for (int64_t k = mine.first; k < mine.end; k += mine.step) {
            Access::store(grad_input, at.at[0] + k * strides[0], slope<logarithm>(gradient(k), result(k), total));
        }
    }
};

// Lines of neighbours, by packs: each is read once where a thread can hold what it has of it.
template <class T, bool logarithm>
struct PackedSoftmaxTask {
    using C = ComputeType<T>;
    static constexpr int kWidth = kRowPack<T>;

    Space<2> outer;  // out, input
    TensorView out;
    TensorView input;
    int64_t count;

    DIOPI_HD void operator()(int64_t i, const Team& team = {}) const {
        const Offsets<2> at = outer.offsets(i);
        with_row_packs<kWidth>(team, count, [&](const auto& mine) { line(at, team, mine); });
    }

    template <class Packs>
    DIOPI_HD_INLINED void line(const Offsets<2>& at, const Team& team, const Packs& mine) const {
        Pack<T, kWidth> values[Packs::kSlots];
        const T* const from = input.as<T>() + at.at[1];
        const auto fetch = [&](int slot, int64_t k) { values[slot] = load_pack<T, kWidth>(from + k); };
        const auto element = [&](int slot, int64_t, int k) { return cast<C>(values[slot].at[k]); };
        mine.hold(fetch);
        const C largest = team.reduce(mine.largest(-math::infinity<C>, fetch, element), Larger{});
        const auto power = [&](int slot, int64_t, int k) {
            return static_cast<RowSum<T>>(math::exp(cast<C>(values[slot].at[k]) - largest));
        };
        const C sum = static_cast<C>(team.reduce(mine.template sum<RowSum<T>>(fetch, power), Plus{}));
        const C last = logarithm ? math::log(sum) : C(1) / sum;
        mine.each(fetch, [&](int slot, int64_t column) {
            Pack<T, kWidth> results;
            DIOPI_UNROLL
            for (int k = 0; k < kWidth; ++k) {
                const C above = cast<C>(values[slot].at[k]) - largest;
                results.at[k] = cast<T>(logarithm ? above - last : math::exp(above) * last);
            }
            store_pack<T, kWidth>(out.as<T>() + at.at[0] + column, results);
        });
    }
};

template <class T, bool logarithm>
struct PackedSoftmaxBackwardTask {
    using C = ComputeType<T>;
    static constexpr int kWidth = kRowPack<T>;

    Space<3> outer;  // grad_input, grad_output, output
    TensorView grad_input;
    TensorView grad_output;
    TensorView output;
    int64_t count;

    DIOPI_HD void operator()(int64_t i, const Team& team = {}) const {
        const Offsets<3> at = outer.offsets(i);
        with_row_packs<kWidth>(team, count, [&](const auto& mine) { line(at, team, mine); });
    }

    template <class Packs>
    DIOPI_HD_INLINED void line(const Offsets<3>& at, const Team& team, const Packs& mine) const {
        Pack<T, kWidth> gradients[Packs::kSlots], results[Packs::kSlots];
        const T* const gradients_from = grad_output.as<T>() + at.at[1];
        const T* const results_from = output.as<T>() + at.at[2];
        const auto fetch = [&](int slot, int64_t k) {
            gradients[slot] = load_pack<T, kWidth>(gradients_from + k);
            results[slot] = load_pack<T, kWidth>(results_from + k);
        };
        const auto term = [&](int slot, int64_t, int k) {
            const C gradient = cast<C>(gradients[slot].at[k]);
            return static_cast<RowSum<T>>(logarithm ? gradient : gradient * cast<C>(results[slot].at[k]));
        };
        mine.hold(fetch);
        const C total = static_cast<C>(team.reduce(mine.template sum<RowSum<T>>(fetch, term), Plus{}));
        mine.each(fetch, [&](int slot, int64_t column) {
            Pack<T, kWidth> slopes;
            DIOPI_UNROLL
            for (int k = 0; k < kWidth; ++k) {
                slopes.at[k] = cast<T>(
                    slope<logarithm>(cast<C>(gradients[slot].at[k]), cast<C>(results[slot].at[k]), total));
            }
            store_pack<T, kWidth>(grad_input.as<T>() + at.at[0] + column, slopes);
        });
    }
};

// Neighbouring lines whose elements are neighbours in memory, so that a row of them is one vector.
template <int N>
struct LineBlocks {
    static constexpr int kColumns = 32;

    Runs<N> runs;  // of lines
    int64_t count;
    int64_t strides[N];
    int64_t blocks;  // of a run

    explicit LineBlocks(const Lines<N>& lines) : runs(runs_of(lines.outer)), count(lines.count) {
        for (int n = 0; n < N; ++n) strides[n] = lines.strides[n];
        blocks = (runs.length + kColumns - 1) / kColumns;
    }

    static bool suit(const Lines<N>& lines) {
        bool apart = Team::kAlone;  // neighbouring threads of several have neighbouring lines
        for (int n = 0; n < N; ++n) apart = apart && lines.strides[n] != 1 && lines.outer.inner_stride(n) == 1;
        return apart && lines.outer.inner_size() >= kColumns / 2;
    }

    int64_t size() const { return runs.outer.numel * blocks; }

    // Calls f(offsets, width), then each(k, c) runs over elements below them.
    template <class F>
    DIOPI_HD void block(int64_t i, F&& f) const {
        const int64_t row = i / blocks;
        const int64_t first = (i - row * blocks) * kColumns;
        Offsets<N> at = runs.outer.offsets(row);
        for (int n = 0; n < N; ++n) at.at[n] += first;
        f(at, static_cast<int>(runs.length - first < kColumns ? runs.length - first : kColumns));
    }

    template <class Body>
    DIOPI_FLATTEN DIOPI_HD void each(int width, const Body& body) const {
        for (int64_t k = 0; k < count; ++k) {
#pragma GCC ivdep
            for (int c = 0; c < width; ++c) body(k, c);
        }
    }
};

template <class Access, bool logarithm>
struct SoftmaxColumnsTask {
    using C = typename Access::Compute;

    LineBlocks<2> lines;  // out, input
    TensorView out;
    TensorView input;

    DIOPI_HD void operator()(int64_t i) const {
        lines.block(i, [&](const Offsets<2>& at, int width) {
            const auto element = [&](int64_t k, int c) {
                return Access::template load<C>(input, at.at[1] + k * lines.strides[1] + c);
            };
            C largest[LineBlocks<2>::kColumns];
            double sum[LineBlocks<2>::kColumns] = {};
            for (int c = 0; c < width; ++c) largest[c] = element(0, c);
            lines.each(width, [&](int64_t k, int c) {
                const C next = element(k, c);
                largest[c] = (next > largest[c]) | (next != next) ? next : largest[c];
            });
            lines.each(width, [&](int64_t k, int c) { sum[c] += math::exp(element(k, c) - largest[c]); });
            C last[LineBlocks<2>::kColumns];
            for (int c = 0; c < width; ++c) {
                const C total = static_cast<C>(sum[c]);
                last[c] = logarithm ? math::log(total) : C(1) / total;
            }
            lines.each(width, [&](int64_t k, int c) {
                const C above = element(k, c) - largest[c];
                Access::store(out, at.at[0] + k * lines.strides[0] + c,
                              logarithm ? above - last[c] : math::exp(above) * last[c]);
            });
        });
    }
};

template <class Access, bool logarithm>
struct SoftmaxBackwardColumnsTask {
    using C = typename Access::Compute;

    LineBlocks<3> lines;  // grad_input, grad_output, output
    TensorView grad_input;
    TensorView grad_output;
    TensorView output;

    DIOPI_HD void operator()(int64_t i) const {
        lines.block(i, [&](const Offsets<3>& at, int width) {
            const auto gradient = [&](int64_t k, int c) {
                return Access::template load<C>(grad_output, at.at[1] + k * lines.strides[1] + c);
            };
            const auto result = [&](int64_t k, int c) {
                return Access::template load<C>(output, at.at[2] + k * lines.strides[2] + c);
            };
            double sum[LineBlocks<3>::kColumns] = {};
            lines.each(width, [&](int64_t k, int c) {
                sum[c] += logarithm ? gradient(k, c) : gradient(k, c) * result(k, c);
            });
            lines.each(width, [&](int64_t k, int c) {
                Access::store(grad_input, at.at[0] + k * lines.strides[0] + c,
                              slope<logarithm>(gradient(k, c), result(k, c), static_cast<C>(sum[c])));
            });
        });
    }
};

// Calls f(operands, lines) with the lines of `operands` along `dim`, of one dtype as of with_common_dtype(); the first
// is written. On a host the elements of a line are neighbours, or those of one place in neighbouring lines are.
template <int N, class F>
void with_lines(Context ctx, const TensorView (&operands)[N], int64_t dim, F&& f) {
    const Lines<N> lines = lines_along(operands, dim);
    bool neighbours = !Team::kAlone || LineBlocks<N>::suit(lines);
    if (!neighbours) {
        neighbours = true;
        for (int n = 0; n < N; ++n) neighbours = neighbours && lines.strides[n] == 1;
    }
    TensorView views[N];
    const int last = operands[0].ndim - 1;
    for (int n = 0; n < N; ++n) {
        views[n] = operands[n];
        if (!neighbours) views[n] = transposed(operands[n], normalized_dim(dim, last + 1), last);
    }
    with_common_dtype(ctx, views, 1, neighbours ? Layout::any : Layout::contiguous, [&](const TensorView (&typed)[N]) {
        f(typed, lines_along(typed, neighbours ? dim : last));
    });
}

template <bool logarithm>
diopiError_t softmax(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input, int64_t dim) {
    return guarded([&] {
        const TensorView operands[2] = {required_view(out, "out"), required_view(input, "input")};
        with_lines(ctx, operands, dim, [&](const TensorView (&typed)[2], const Lines<2>& lines) {
            dispatch_typed({&typed[0], &typed[1]}, [&](auto access) {
                using Access = decltype(access);
                if (LineBlocks<2>::suit(lines)) {
                    const LineBlocks<2> blocks(lines);
                    for_each(ctx, blocks.size(), SoftmaxColumnsTask<Access, logarithm>{blocks, typed[0], typed[1]});
                    return;
                }
                if constexpr (kHasPacks<Access>) {
                    using Task = PackedSoftmaxTask<typename Access::Element, logarithm>;
                    if (has_packed_runs(lines.outer, lines.count, lines.strides, typed, Task::kWidth)) {
                        for_each_by_teams(ctx, lines.outer.numel, packed_work(lines.count, Task::kWidth),
                                          Task{lines.outer, typed[0], typed[1], lines.count});
                        return;
                    }
                }
                for_each_by_teams(ctx, lines.outer.numel, team_work(lines, 1),
                                  SoftmaxTask<Access, logarithm>{lines, typed[0], typed[1]});
            });
        });
    });
}

template <bool logarithm>
diopiError_t softmax_backward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input,
                              diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t output, int64_t dim) {
    return guarded([&] {
        const TensorView operands[3] = {required_view(grad_input, "grad_input"),
                                        required_view(grad_output, "grad_output"), required_view(output, "output")};
        with_lines(ctx, operands, dim, [&](const TensorView (&typed)[3], const Lines<3>& lines) {
            dispatch_typed({&typed[0], &typed[1], &typed[2]}, [&](auto access) {
                using Access = decltype(access);
                if (LineBlocks<3>::suit(lines)) {
                    const LineBlocks<3> blocks(lines);
                    for_each(ctx, blocks.size(),
                             SoftmaxBackwardColumnsTask<Access, logarithm>{blocks, typed[0], typed[1], typed[2]});
                    return;
                }
                if constexpr (kHasPacks<Access>) {
                    using Task = PackedSoftmaxBackwardTask<typename Access::Element, logarithm>;
                    if (has_packed_runs(lines.outer, lines.count, lines.strides, typed, Task::kWidth)) {
                        for_each_by_teams(ctx, lines.outer.numel, packed_work(lines.count, Task::kWidth),
                                          Task{lines.outer, typed[0], typed[1], typed[2], lines.count});
                        return;
                    }
                }
                for_each_by_teams(ctx, lines.outer.numel, team_work(lines, 1),
                                  SoftmaxBackwardTask<Access, logarithm>{lines, typed[0], typed[1], typed[2]});
            });
        });
    });
}

}  // namespace

diopiError_t diopiSoftmax(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                          int64_t dim) {
    return softmax<false>(ctx, out, input, dim);
}

diopiError_t diopiLogSoftmax(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                             int64_t dim) {
    return softmax<true>(ctx, out, input, dim);
}

diopiError_t diopiSoftmaxBackward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input,
                                  diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t output, int64_t dim) {
    return softmax_backward<false>(ctx, grad_input, grad_output, output, dim);
}

diopiError_t diopiLogSoftmaxBackward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input,
                                     diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t output,
                                     int64_t dim) {
    return softmax_backward<true>(ctx, grad_input, grad_output, output, dim);
}

}  // namespace impl::portable

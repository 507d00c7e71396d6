// Softmax and its logarithm along a dimension, with their gradients.
#include <diopi/diopirt.h>

#include <algorithm>

#include "copy/common_dtype.h"
#include "core/team.h"
#include "core/view.h"
#include "math/math.h"
#include "space/access.h"
#include "space/lines.h"
#include "space/packed_rows.h"
#include "space/runs.h"
#include "space/strides.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

// Lines of neighbours, on a host.
template <class C, class Flag>
struct SoftmaxLineTask {
    static constexpr int64_t kBuffer = 4096;

    Lines<2> lines;
    TensorView tensors[2];  // out, input
    Flag logarithm;

    // A line that is no whole vectors has them in a buffer: each element left alone would cost as much as a vector.
    DIOPI_FLATTEN DIOPI_HD void operator()(int64_t i) const {
        const Offsets<2> at = lines.outer.offsets(i);
        const C* const input = tensors[1].as<C>() + at.at[1];
        C* const out = tensors[0].as<C>() + at.at[0];
        const int64_t count = lines.count, whole = (count + kLanes - 1) / kLanes * kLanes;
        if (count == whole || whole > kBuffer) return line(out, input, count);
        alignas(64) C buffer[kBuffer];
        buffer[0] = input[0];  // else g++ warns
        each(WholeRun{count}, [&](int64_t k) { buffer[k] = input[k]; });
        for (int64_t k = count; k < whole; ++k) buffer[k] = -math::infinity<C>;
        line(buffer, buffer, whole);
        each(WholeRun{count}, [&](int64_t k) { out[k] = buffer[k]; });
    }

    DIOPI_HD_INLINED void line(C* out, const C* input, int64_t count) const {
        const WholeRun all{count};
        // from the largest element on nothing overflows, whatever the inputs
        const C largest = largest_of_run<C>(all, [&](int64_t k) { return input[k]; });
        const auto power = [&](int64_t k) { return math::exp(input[k] - largest); };
        // the output holds the powers meanwhile, so that each is worked out once
        if (!logarithm) each(all, [&](int64_t k) { out[k] = power(k); });
        const C sum = static_cast<C>(sum_of_run(all, [&](int64_t k) { return logarithm ? power(k) : out[k]; }));
        const C last = logarithm ? math::log(sum) : C(1) / sum;
        each(all, [&](int64_t k) { out[k] = logarithm ? input[k] - largest - last : out[k] * last; });
    }
};

template <class Flag, class C>
DIOPI_HD inline C slope(Flag logarithm, C gradient, C result, C total) {
    return logarithm ? gradient - math::exp(result) * total : result * (gradient - total);
}

template <class C, class Flag>
struct SoftmaxBackwardLineTask {
    Lines<3> lines;
    TensorView tensors[3];  // grad_input, grad_output, output
    Flag logarithm;

    DIOPI_FLATTEN DIOPI_HD void operator()(int64_t i) const {
        const Offsets<3> at = lines.outer.offsets(i);
        C* const out = tensors[0].as<C>() + at.at[0];
        const C *const gradient = tensors[1].as<C>() + at.at[1], *const result = tensors[2].as<C>() + at.at[2];
        const WholeRun all{lines.count};
        const double sum =
            sum_of_run(all, [&](int64_t k) { return logarithm ? gradient[k] : gradient[k] * result[k]; });
        const C total = static_cast<C>(sum);
        each(all, [&](int64_t k) { out[k] = slope(logarithm, gradient[k], result[k], total); });
    }
};

// What a thread of a team takes of a line at a time: a pack of neighbours ...
template <class T>
struct Packs {
    using Element = T;
    using Compute = ComputeType<T>;
    using Sum = RowSum<T>;
    static constexpr int kWidth = kRowPack<T>, kSlots = kHeldPacks;

    DIOPI_HD static Pack<T, kWidth> load(const TensorView& tensor, int64_t offset) {
        return load_pack<T, kWidth>(tensor.as<T>() + offset);
    }
    DIOPI_HD static void store(const TensorView& tensor, int64_t offset, const Pack<T, kWidth>& values) {
        store_pack<T, kWidth>(tensor.as<T>() + offset, values);
    }
};

// ... or an element, wherever the next one is.
template <class Access>
struct Singles {
    using Element = typename Access::Compute;
    using Compute = Element;
    using Sum = double;
    static constexpr int kWidth = 1, kSlots = 2 * kHeldPacks;

    DIOPI_HD static Pack<Element, 1> load(const TensorView& tensor, int64_t offset) {
        return {{Access::template load<Element>(tensor, offset)}};
    }
    DIOPI_HD static void store(const TensorView& tensor, int64_t offset, const Pack<Element, 1>& values) {
        Access::store(tensor, offset, values.at[0]);
    }
};

// A line for a team: it is read once where a thread can hold what it has of it. Elements: Packs or Singles.
template <class Kernel>
struct TeamTask : Kernel {
    DIOPI_HD void operator()(int64_t i, const Team& team = {}) const {
        using Elements = typename Kernel::Elements;
        const auto at = this->lines.outer.offsets(i);
        with_row_packs<Elements::kWidth, Elements::kSlots>(team, this->lines.count,
                                                           [&](const auto& mine) { this->line(at, team, mine); });
    }
};

template <class Taken>
struct SoftmaxKernel {
    using Elements = Taken;
    using C = typename Elements::Compute;
    static constexpr int kWidth = Elements::kWidth;
    using Values = Pack<typename Elements::Element, kWidth>;

    Lines<2> lines;
    TensorView tensors[2];  // out, input
    bool logarithm;

    template <class Mine>
    DIOPI_HD_INLINED void line(const Offsets<2>& at, const Team& team, const Mine& mine) const {
        Values values[Mine::kSlots];
        const auto fetch = [&](int slot, int64_t column) {
            values[slot] = Elements::load(tensors[1], at.at[1] + column * lines.strides[1]);
        };
        const auto element = [&](int slot, int64_t, int k) { return cast<C>(values[slot].at[k]); };
        mine.hold(fetch);
        const C largest = team.reduce(mine.largest(-math::infinity<C>, fetch, element), Larger{});
        C powers[Mine::kSlots][kWidth];  // kept where the values are
        const auto power = [&](int slot, int64_t, int k) {
            powers[slot][k] = math::exp(cast<C>(values[slot].at[k]) - largest);
            return static_cast<typename Elements::Sum>(powers[slot][k]);
        };
        const C sum = static_cast<C>(team.reduce(mine.template sum<typename Elements::Sum>(fetch, power), Plus{}));
        const C last = logarithm ? math::log(sum) : C(1) / sum;
        mine.each(fetch, [&](int slot, int64_t column) {
            Values results;
            DIOPI_UNROLL
            for (int k = 0; k < kWidth; ++k) {
                const C above = cast<C>(values[slot].at[k]) - largest;
                const auto raised = [&] { return Mine::kHeld ? powers[slot][k] : math::exp(above); };
                results.at[k] = cast<typename Elements::Element>(logarithm ? above - last : raised() * last);
            }
            Elements::store(tensors[0], at.at[0] + column * lines.strides[0], results);
        });
    }
};

template <class Taken>
struct SoftmaxBackwardKernel {
    using Elements = Taken;
    using C = typename Elements::Compute;
    static constexpr int kWidth = Elements::kWidth;
    using Values = Pack<typename Elements::Element, kWidth>;

    Lines<3> lines;
    TensorView tensors[3];  // grad_input, grad_output, output
    bool logarithm;

    template <class Mine>
    DIOPI_HD_INLINED void line(const Offsets<3>& at, const Team& team, const Mine& mine) const {
        Values gradients[Mine::kSlots], results[Mine::kSlots];
        const auto fetch = [&](int slot, int64_t column) {
            gradients[slot] = Elements::load(tensors[1], at.at[1] + column * lines.strides[1]);
            results[slot] = Elements::load(tensors[2], at.at[2] + column * lines.strides[2]);
        };
        const auto term = [&](int slot, int64_t, int k) {
            const C gradient = cast<C>(gradients[slot].at[k]);
            return static_cast<typename Elements::Sum>(logarithm ? gradient : gradient * cast<C>(results[slot].at[k]));
        };
        mine.hold(fetch);
        const C total = static_cast<C>(team.reduce(mine.template sum<typename Elements::Sum>(fetch, term), Plus{}));
        mine.each(fetch, [&](int slot, int64_t column) {
            Values slopes;
            DIOPI_UNROLL
            for (int k = 0; k < kWidth; ++k) {
                slopes.at[k] = cast<typename Elements::Element>(
                    slope(logarithm, cast<C>(gradients[slot].at[k]), cast<C>(results[slot].at[k]), total));
            }
            Elements::store(tensors[0], at.at[0] + column * lines.strides[0], slopes);
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

    LineBlocks() = default;
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
        const int64_t row = i / blocks, first = (i - row * blocks) * kColumns;
        Offsets<N> at = runs.outer.offsets(row);
        for (int n = 0; n < N; ++n) at.at[n] += first;
        f(at, static_cast<int>(runs.length - first < kColumns ? runs.length - first : kColumns));
    }

    template <class Body>
    DIOPI_FLATTEN DIOPI_HD void each(int width, const Body& body) const {
        for (int64_t k = 0; k < count; ++k) {
            DIOPI_VECTOR_LOOP
            for (int c = 0; c < width; ++c) body(k, c);
        }
    }
};

template <class Kernel>
struct BlockTask : Kernel {
    DIOPI_HD void operator()(int64_t i) const {
        this->lines.block(i, [&](const auto& at, int width) { this->block(at, width); });
    }
};

template <class Access, class Flag>
struct SoftmaxBlockKernel {
    using C = typename Access::Compute;

    LineBlocks<2> lines;
    TensorView tensors[2];  // out, input
    Flag logarithm;

    DIOPI_HD void block(const Offsets<2>& at, int width) const {
        const auto element = [&](int64_t k, int c) {
            return Access::template load<C>(tensors[1], at.at[1] + k * lines.strides[1] + c);
        };
        C largest[LineBlocks<2>::kColumns];
        double sum[LineBlocks<2>::kColumns] = {};
        for (int c = 0; c < width; ++c) largest[c] = element(0, c);
        lines.each(width, [&](int64_t k, int c) {
            const C next = element(k, c);
            largest[c] = ((next > largest[c]) | (next != next)) ? next : largest[c];
        });
        lines.each(width, [&](int64_t k, int c) { sum[c] += math::exp(element(k, c) - largest[c]); });
        C last[LineBlocks<2>::kColumns];
        for (int c = 0; c < width; ++c) {
            const C total = static_cast<C>(sum[c]);
            last[c] = logarithm ? math::log(total) : C(1) / total;
        }
        lines.each(width, [&](int64_t k, int c) {
            const C above = element(k, c) - largest[c];
            Access::store(tensors[0], at.at[0] + k * lines.strides[0] + c,
                          logarithm ? above - last[c] : math::exp(above) * last[c]);
        });
    }
};

template <class Access, class Flag>
struct SoftmaxBackwardBlockKernel {
    using C = typename Access::Compute;

    LineBlocks<3> lines;
    TensorView tensors[3];  // grad_input, grad_output, output
    Flag logarithm;

    DIOPI_HD void block(const Offsets<3>& at, int width) const {
        const auto gradient = [&](int64_t k, int c) {
            return Access::template load<C>(tensors[1], at.at[1] + k * lines.strides[1] + c);
        };
        const auto result = [&](int64_t k, int c) {
            return Access::template load<C>(tensors[2], at.at[2] + k * lines.strides[2] + c);
        };
        double sum[LineBlocks<3>::kColumns] = {};
        lines.each(width,
                   [&](int64_t k, int c) { sum[c] += logarithm ? gradient(k, c) : gradient(k, c) * result(k, c); });
        lines.each(width, [&](int64_t k, int c) {
            Access::store(tensors[0], at.at[0] + k * lines.strides[0] + c,
                          slope(logarithm, gradient(k, c), result(k, c), static_cast<C>(sum[c])));
        });
    }
};

// Calls f(operands, lines) with the lines of `operands` along `dim`, of one dtype as of with_common_dtype(); the first
// is written. On a host the elements of a line are neighbours, or those of one place in neighbouring lines are.
template <int N, class F>
void with_lines(Context ctx, const TensorView (&operands)[N], int64_t dim, F&& f) {
    const Lines<N> lines = lines_along(operands, dim);
    const auto is_one = [](int64_t stride) { return stride == 1; };
    const bool neighbours =
        !Team::kAlone || LineBlocks<N>::suit(lines) || std::all_of(lines.strides, lines.strides + N, is_one);
    TensorView views[N];
    const int last = operands[0].ndim - 1;
    for (int n = 0; n < N; ++n) {
        views[n] = operands[n];
        if (!neighbours) views[n] = transposed(operands[n], normalized_dim(dim, last + 1), last);
    }
    const auto run = [&](const TensorView(&typed)[N]) { f(typed, lines_along(typed, neighbours ? dim : last)); };
    with_common_dtype(ctx, views, 1, run, neighbours ? Layout::any : Layout::contiguous);
}

template <class Task, class Lines, int N, class Flag>
Task task_of(const Lines& lines, const TensorView (&operands)[N], Flag logarithm) {
    Task task{};
    task.lines = lines;
    task.logarithm = logarithm;
    std::copy_n(operands, N, task.tensors);
    return task;
}

template <template <class, class> class LineTask, template <class, class> class BlockKernel,
          template <class> class TeamKernel, int N>
void run_lines(Context ctx, const TensorView (&operands)[N], int64_t dim, bool logarithm) {
    with_lines(ctx, operands, dim, [&](const TensorView(&typed)[N], const Lines<N>& lines) {
        if constexpr (Team::kAlone) {
            with_flag(logarithm, [&](auto flag) {
                dispatch_typed(typed, [&](auto access) {
                    using Line = LineTask<typename decltype(access)::Compute, decltype(flag)>;
                    using Block = BlockTask<BlockKernel<decltype(access), decltype(flag)>>;
                    if (!LineBlocks<N>::suit(lines))
                        return for_each(ctx, lines.outer.numel, task_of<Line>(lines, typed, flag));
                    const LineBlocks<N> blocks(lines);
                    for_each(ctx, blocks.size(), task_of<Block>(blocks, typed, flag));
                });
            });
        } else {
            const auto packed = [&](auto type) {
                using Elements = Packs<typename decltype(type)::type>;
                if (!has_packed_runs(lines.outer, lines.count, lines.strides, typed, Elements::kWidth)) return false;
                for_each_by_teams(ctx, lines.outer.numel, packed_work(lines.count, Elements::kWidth),
                                  task_of<TeamTask<TeamKernel<Elements>>>(lines, typed, logarithm));
                return true;
            };
            if (dispatch_packs(typed, packed)) return;
            dispatch_typed(typed, [&](auto access) {
                using Task = TeamTask<TeamKernel<Singles<decltype(access)>>>;
                for_each_by_teams(ctx, lines.outer.numel, team_work(lines, 1), task_of<Task>(lines, typed, logarithm));
            });
        }
    });
}

diopiError_t softmax(Context ctx, Tensor out, ConstTensor input, int64_t dim, bool logarithm) {
    return guarded([&] {
        const TensorView operands[2] = {required_view(out, "out"), required_view(input, "input")};
        run_lines<SoftmaxLineTask, SoftmaxBlockKernel, SoftmaxKernel>(ctx, operands, dim, logarithm);
    });
}

diopiError_t softmax_backward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor output, int64_t dim,
                              bool logarithm) {
    return guarded([&] {
        const TensorView operands[3] = {required_view(grad_input, "grad_input"),
                                        required_view(grad_output, "grad_output"), required_view(output, "output")};
        run_lines<SoftmaxBackwardLineTask, SoftmaxBackwardBlockKernel, SoftmaxBackwardKernel>(ctx, operands, dim,
                                                                                              logarithm);
    });
}

}  // namespace

diopiError_t diopiSoftmax(Context ctx, Tensor out, ConstTensor input, int64_t dim) {
    return softmax(ctx, out, input, dim, false);
}

diopiError_t diopiLogSoftmax(Context ctx, Tensor out, ConstTensor input, int64_t dim) {
    return softmax(ctx, out, input, dim, true);
}

diopiError_t diopiSoftmaxBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor output,
                                  int64_t dim) {
    return softmax_backward(ctx, grad_input, grad_output, output, dim, false);
}

diopiError_t diopiLogSoftmaxBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor output,
                                     int64_t dim) {
    return softmax_backward(ctx, grad_input, grad_output, output, dim, true);
}

}  // namespace impl::portable

// Attention of halves by cuDNN's fused kernels, which its graphs name: a graph for each problem and thread.
#include <cuda_runtime.h>

#include <algorithm>

#include "cudnn_graph.h"
#include "cudnn_handle.h"
#include "float_attention.h"
#include "library_handles.h"
#include "core/error.h"
#include "core/half.h"
#include "launch/library_attention.h"

namespace diopi::launch {
namespace {

// The gradients of scores that cuDNN keeps where it may not add up in any order, of as many sequences as it takes at
// once.
constexpr int64_t kMostBytes = int64_t{2} << 30;
constexpr int64_t kMostBlocks = 65535;  // of a launch, in its second and third dimension

// A tensor's name in a graph: one more than its part, or one of these.
enum Name : int64_t { kLogSums = kAttentionParts + 1, kSeed, kOffset };

int64_t name_of(int part) { return part + 1; }

class Plan : public CudnnGraph {
public:
    Plan(cudnnHandle_t handle, const LibraryAttention& problem) : problem_(problem) {
        build(handle, problem.dtype, {},
              [&] { problem_.step == AttentionStep::kForward ? add_forward() : add_backward(); });
    }

    // Of the sequences from `first` on, which are such a part of them.
    void execute(cudnnHandle_t handle, const AttentionRows& rows, void* room, int64_t first, int64_t part) const {
        const auto at = [&](void* data, const AttentionStrides& strides) {
            return static_cast<char*>(data) + 2 * first * strides.sequence;  // bytes of halves
        };
        std::unordered_map<int64_t, void*> places;
        const int parts = problem_.step == AttentionStep::kForward ? kGradAttended : kAttentionParts;
        for (int n = 0; n < parts; ++n) places.emplace(name_of(n), at(rows.of[n], problem_.strides[n]));
        if (problem_.keeps_sums) places.emplace(kLogSums, rows.log_sums + first * problem_.heads * problem_.queries);
        if (problem_.dropout != 0) {
            places.emplace(kSeed, const_cast<uint64_t*>(rows.seed));
            places.emplace(kOffset, const_cast<uint64_t*>(rows.seed + 1 + part));
        }
        run(handle, places, room);
    }

private:
    void add_forward() {
        auto options = with_weights(fe::graph::SDPA_attributes());
        options.set_generate_stats(problem_.keeps_sums);
        // the form that all releases of cuDNN have
        options.set_implementation(fe::AttentionImplementation_t::COMPOSITE);
        const auto [out, log_sums] = graph_.sdpa(input(of(kQueries)), input(of(kKeys)), input(of(kValues)), options);
        give(out, of(kAttended));
        if (problem_.keeps_sums) give(log_sums, sums());
    }

    void add_backward() {
        auto options = with_weights(fe::graph::SDPA_backward_attributes());
        options.set_deterministic_algorithm(true);
        const auto [grad_q, grad_k, grad_v] =
            graph_.sdpa_backward(input(of(kQueries)), input(of(kKeys)), input(of(kValues)), input(of(kAttended)),
                                 input(of(kGradAttended)), input(sums()), options);
        give(grad_q, of(kGradQueries));
        give(grad_k, of(kGradKeys));
        give(grad_v, of(kGradValues));
    }

    // Where there are as many keys as queries, both diagonals are one.
    template <class Options>
    Options with_weights(Options options) {
        const bool square = problem_.queries == problem_.keys;
        options.set_name("attention").set_attn_scale(static_cast<float>(problem_.scale));
        if (problem_.causal) {
            options.set_diagonal_alignment(square ? fe::DiagonalAlignment_t::TOP_LEFT
                                                  : fe::DiagonalAlignment_t::BOTTOM_RIGHT);
            options.set_diagonal_band_right_bound(0);
        }
        if (problem_.dropout != 0)
            options.set_dropout(static_cast<float>(problem_.dropout), input(word(kSeed)), input(word(kOffset)));
        return options;
    }

    Layout of(AttentionPart part) const {
        const LibraryAttention& p = problem_;
        const AttentionStrides& s = p.strides[part];
        const bool of_keys = part == kKeys || part == kValues || part == kGradKeys || part == kGradValues;
        return {name_of(part),
                {p.sequences, of_keys ? p.shared_heads : p.heads, of_keys ? p.keys : p.queries, p.channels},
                {s.sequence, s.head, s.token, 1}};
    }
    Layout sums() const {
        return {kLogSums,
                {problem_.sequences, problem_.heads, problem_.queries, 1},
                {problem_.heads * problem_.queries, problem_.queries, 1, 1},
                fe::DataType_t::FLOAT};
    }

    static Layout word(Name name) { return {name, {1, 1, 1, 1}, {1, 1, 1, 1}, fe::DataType_t::INT64}; }

    LibraryAttention problem_;
};

using Key = std::vector<int64_t>;

Key plan_key(const LibraryAttention& p) {
    Key key{static_cast<int64_t>(p.step), p.dtype, p.sequences, p.heads, p.shared_heads, p.queries, p.keys};
    key.insert(key.end(), {p.channels, kernels::bits_as<int64_t>(p.scale), kernels::bits_as<int64_t>(p.dropout),
                           p.causal ? 1 : 0, p.keeps_sums ? 1 : 0});
    for (const AttentionStrides& s : p.strides) key.insert(key.end(), {s.sequence, s.token, s.head});
    return key;
}

const Plan& plan_of(const LibraryAttention& problem) {
    const cudnnHandle_t handle = cudnn();  // made before the plans, so that it outlives them
    thread_local ByDevice<PlanCache<Key, Plan>> plans;
    return *plans.current().cached(plan_key(problem), [&] { return std::make_unique<const Plan>(handle, problem); });
}

int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

// How many sequences are computed at once: none where already one is too large. What draws has the same parts in both
// steps.
int64_t sequences_at_once(const LibraryAttention& problem) {
    const int64_t most = std::min(problem.sequences, kMostBlocks);
    if (problem.step == AttentionStep::kForward && problem.dropout == 0) return most;
    const int64_t scores = problem.heads * round_up(problem.queries, 64) * round_up(problem.keys, 128);
    return std::min(most, kMostBytes / (2 * scores));
}

LibraryAttention part_of(LibraryAttention problem, int64_t sequences) {
    problem.sequences = sequences;
    return problem;
}

}  // namespace

bool drops_as_told(diopiDtype_t dtype) { return dtype == diopi_dtype_float32; }

bool has_attention(const LibraryAttention& problem) {
    if (problem.dtype == diopi_dtype_float32) return has_float_attention(problem);
    const int64_t most = sequences_at_once(problem);
    if (most == 0 || problem.heads > kMostBlocks) return false;
    if (problem.dropout != 0 && problem.sequences > most * kDraws) return false;
    const int64_t rest = problem.sequences % most;
    return plan_of(part_of(problem, most)).is_runnable() &&
           (rest == 0 || plan_of(part_of(problem, rest)).is_runnable());
}

diopiError_t attend(diopiStreamHandle_t stream, const LibraryAttention& problem, const AttentionRows& rows,
                    const Workspace& workspace) {
    return kernels::guarded([&] {
        if (problem.dtype == diopi_dtype_float32)
            return attend_floats(static_cast<cudaStream_t>(stream), problem, rows, workspace);
        const cudnnHandle_t handle = cudnn_on(static_cast<cudaStream_t>(stream));
        const int64_t most = sequences_at_once(problem), rest = problem.sequences % most;
        int64_t bytes = plan_of(part_of(problem, most)).bytes();
        if (rest > 0) bytes = std::max(bytes, plan_of(part_of(problem, rest)).bytes());
        void* const room = bytes == 0 ? nullptr : workspace(bytes);  // for one part after the other
        for (int64_t first = 0; first < problem.sequences; first += most) {
            const LibraryAttention part = part_of(problem, std::min(most, problem.sequences - first));
            plan_of(part).execute(handle, rows, room, first, first / most);
        }
    });
}

}  // namespace diopi::launch

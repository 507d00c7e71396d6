// Attention by cuDNN's fused kernels, which its graphs name: a graph for each problem and thread.
#include <cuda_runtime.h>
#include <cudnn_frontend.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "cudnn_handle.h"
#include "library_handles.h"
#include "core/error.h"
#include "launch/library_attention.h"

namespace diopi::launch {
namespace {

namespace fe = cudnn_frontend;

using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

// The gradients of scores that cuDNN keeps where it may not add up in any order, of as many sequences as it takes at
// once.
constexpr int64_t kMostBytes = int64_t{2} << 30;
constexpr int64_t kMostBlocks = 65535;  // of a launch, in its second and third dimension

// A tensor's name in a graph.
enum Place : int64_t { kQ = 1, kK, kV, kOut, kLogSums, kGradOut, kGradQ, kGradK, kGradV, kSeed, kOffset };

// A problem as cuDNN's graph, with the kernel that its heuristics choose.
class Plan {
public:
    Plan(cudnnHandle_t handle, const LibraryAttention& problem) : problem_(problem) {
        try {
            runs_ = is_built(handle);
        } catch (const std::exception&) {
            runs_ = false;
        }
    }

    bool is_runnable() const { return runs_; }
    int64_t bytes() const { return bytes_; }  // of the workspace

    // Of the part that has so many before it.
    void execute(cudnnHandle_t handle, const AttentionRows& rows, void* room, int64_t part) const {
        const auto read = [](const void* data) { return const_cast<void*>(data); };
        std::unordered_map<int64_t, void*> places{
            {kQ, read(rows.q)}, {kK, read(rows.k)}, {kV, read(rows.v)}, {kOut, rows.out}};
        if (problem_.keeps_sums) places.emplace(kLogSums, rows.log_sums);
        if (problem_.step == AttentionStep::kBackward) {
            places.emplace(kGradOut, read(rows.grad_out));
            places.emplace(kGradQ, rows.grad_q);
            places.emplace(kGradK, rows.grad_k);
            places.emplace(kGradV, rows.grad_v);
        }
        if (problem_.dropout != 0) {
            places.emplace(kSeed, read(rows.seed));
            places.emplace(kOffset, read(rows.seed + 1 + part));
        }
        fe::error_object status = graph_.execute(handle, places, room);
        kernels::require(status.is_good(), "attention failed in cuDNN: %s", status.get_message().c_str());
    }

private:
    bool is_built(cudnnHandle_t handle) {
        const bool bfloat = problem_.dtype == diopi_dtype_bfloat16;
        graph_.set_io_data_type(bfloat ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF)
            .set_intermediate_data_type(fe::DataType_t::FLOAT)
            .set_compute_data_type(fe::DataType_t::FLOAT);
        if (problem_.step == AttentionStep::kForward) {
            add_forward();
        } else {
            add_backward();
        }
        return graph_.build(handle, {fe::HeurMode_t::A}).is_good() && graph_.get_workspace_size(bytes_).is_good();
    }

    void add_forward() {
        auto options = with_weights(fe::graph::SDPA_attributes());
        options.set_generate_stats(problem_.keeps_sums);
        // the form that all releases of cuDNN have
        options.set_implementation(fe::AttentionImplementation_t::COMPOSITE);
        const auto [out, log_sums] = graph_.sdpa(input(of_queries(kQ, problem_.q)), input(of_keys(kK, problem_.k)),
                                                 input(of_keys(kV, problem_.v)), options);
        give(out, of_queries(kOut, problem_.out));
        if (problem_.keeps_sums) give(log_sums, sums());
    }

    void add_backward() {
        auto options = with_weights(fe::graph::SDPA_backward_attributes());
        options.set_deterministic_algorithm(true);
        const auto [grad_q, grad_k, grad_v] =
            graph_.sdpa_backward(input(of_queries(kQ, problem_.q)), input(of_keys(kK, problem_.k)),
                                 input(of_keys(kV, problem_.v)), input(of_queries(kOut, problem_.out)),
                                 input(of_queries(kGradOut, problem_.grad_out)), input(sums()), options);
        give(grad_q, of_queries(kGradQ, problem_.grad_q));
        give(grad_k, of_keys(kGradK, problem_.grad_k));
        give(grad_v, of_keys(kGradV, problem_.grad_v));
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
            options.set_dropout(static_cast<float>(problem_.dropout), word(kSeed), word(kOffset));
        return options;
    }

    struct Layout {
        Place place;
        std::vector<int64_t> sizes, strides;
        bool halves;
    };

    Layout of_queries(Place place, const AttentionStrides& s) const {
        return {place,
                {problem_.sequences, problem_.heads, problem_.queries, problem_.channels},
                {s.sequence, s.head, s.token, 1},
                true};
    }
    Layout of_keys(Place place, const AttentionStrides& s) const {
        return {place,
                {problem_.sequences, problem_.shared_heads, problem_.keys, problem_.channels},
                {s.sequence, s.head, s.token, 1},
                true};
    }
    Layout sums() const {
        return {kLogSums,
                {problem_.sequences, problem_.heads, problem_.queries, 1},
                {problem_.heads * problem_.queries, problem_.queries, 1, 1},
                false};
    }

    static void describe(fe::graph::Tensor_attributes& tensor, const Layout& layout) {
        tensor.set_uid(layout.place).set_dim(layout.sizes).set_stride(layout.strides);
        if (!layout.halves) tensor.set_data_type(fe::DataType_t::FLOAT);
    }
    Tensor input(const Layout& layout) {
        fe::graph::Tensor_attributes tensor;
        describe(tensor, layout);
        return graph_.tensor(tensor);
    }
    Tensor word(Place place) {
        fe::graph::Tensor_attributes tensor;
        tensor.set_uid(place).set_dim({1, 1, 1, 1}).set_stride({1, 1, 1, 1}).set_data_type(fe::DataType_t::INT64);
        return graph_.tensor(tensor);
    }
    static void give(const Tensor& output, const Layout& layout) {
        output->set_output(true);
        describe(*output, layout);
    }

    LibraryAttention problem_;
    fe::graph::Graph graph_;
    int64_t bytes_ = 0;
    bool runs_ = false;
};

// The plans that a thread has made on one device.
class Plans {
public:
    const Plan& cached_plan(cudnnHandle_t handle, const LibraryAttention& problem) {
        if (plans_.size() > kMostPlans) plans_.clear();
        std::unique_ptr<const Plan>& plan = plans_[plan_key(problem)];
        if (plan == nullptr) plan = std::make_unique<const Plan>(handle, problem);
        return *plan;
    }

private:
    static constexpr size_t kMostPlans = 1024;
    using Key = std::vector<int64_t>;

    static Key plan_key(const LibraryAttention& p) {
        const auto bits = [](double value) {
            int64_t word = 0;
            std::memcpy(&word, &value, sizeof word);
            return word;
        };
        Key key{static_cast<int64_t>(p.step), p.dtype, p.sequences, p.heads, p.shared_heads, p.queries, p.keys};
        key.insert(key.end(), {p.channels, bits(p.scale), bits(p.dropout), p.causal ? 1 : 0, p.keeps_sums ? 1 : 0});
        for (const AttentionStrides* s : {&p.q, &p.k, &p.v, &p.out, &p.grad_out, &p.grad_q, &p.grad_k, &p.grad_v})
            key.insert(key.end(), {s->sequence, s->token, s->head});
        return key;
    }

    std::map<Key, std::unique_ptr<const Plan>> plans_;
};

const Plan& plan_of(const LibraryAttention& problem) {
    const cudnnHandle_t handle = cudnn();  // made before the plans, so that it outlives them
    thread_local ByDevice<Plans> plans;
    return plans.current().cached_plan(handle, problem);
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

const void* moved(const void* data, int64_t bytes) {
    return data == nullptr ? nullptr : static_cast<const char*>(data) + bytes;
}
void* moved(void* data, int64_t bytes) { return data == nullptr ? nullptr : static_cast<char*>(data) + bytes; }

// Those of the sequences from `first` on.
AttentionRows rows_from(const LibraryAttention& p, const AttentionRows& rows, int64_t first) {
    constexpr int64_t kHalf = 2;  // bytes
    const auto to = [&](const AttentionStrides& strides) { return kHalf * first * strides.sequence; };
    AttentionRows part{};
    part.q = moved(rows.q, to(p.q));
    part.k = moved(rows.k, to(p.k));
    part.v = moved(rows.v, to(p.v));
    part.out = moved(rows.out, to(p.out));
    if (rows.log_sums != nullptr) part.log_sums = rows.log_sums + first * p.heads * p.queries;
    part.grad_out = moved(rows.grad_out, to(p.grad_out));
    part.grad_q = moved(rows.grad_q, to(p.grad_q));
    part.grad_k = moved(rows.grad_k, to(p.grad_k));
    part.grad_v = moved(rows.grad_v, to(p.grad_v));
    part.seed = rows.seed;
    return part;
}

}  // namespace

bool has_attention(const LibraryAttention& problem) {
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
        const cudnnHandle_t handle = cudnn_on(static_cast<cudaStream_t>(stream));
        const int64_t most = sequences_at_once(problem), rest = problem.sequences % most;
        int64_t bytes = plan_of(part_of(problem, most)).bytes();
        if (rest > 0) bytes = std::max(bytes, plan_of(part_of(problem, rest)).bytes());
        void* const room = bytes == 0 ? nullptr : workspace(bytes);  // for one part after the other
        for (int64_t first = 0; first < problem.sequences; first += most) {
            const LibraryAttention part = part_of(problem, std::min(most, problem.sequences - first));
            plan_of(part).execute(handle, rows_from(problem, rows, first), room, first / most);
        }
    });
}

}  // namespace diopi::launch

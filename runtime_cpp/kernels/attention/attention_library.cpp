#include "attention_library.h"

#if defined(DIOPI_LAUNCHER_HAS_ATTENTION)

#include <cstdint>

#include "attention_products.h"
#include "copy/copy.h"
#include "launch/library_attention.h"

namespace diopi::kernels {
namespace {

using namespace diopi::launch;

// In elements: 16 bytes, which libraries load at once.
int64_t alignment(const TensorView& rows) { return 16 / element_size(rows.dtype); }

bool is_causal(const Attention& a) { return a.right == 0; }

bool drops(const Attention& a) { return a.dropout.probability != 0; }

// One number for each softmax, or none.
bool keeps_log_sums(const Attention& a) {
    const TensorView& kept = a.statistics.log_sum;
    if (!kept.defined()) return true;
    return kept.ndim == 4 && kept.sizes[0] == a.q.sizes[0] && kept.sizes[1] == a.q.sizes[1] &&
           kept.sizes[2] == a.q.sizes[2] && kept.sizes[3] == 1 && !a.statistics.sum.defined() && !a.statistics.by_row;
}

// What is known without the tensors' memory, and alike in both steps. Libraries may look for the greatest product before
// they scale it, and do not foresee a causal query that no key stands at or before; for single tokens they have other
// kernels, which products serve as well.
bool is_plain(const Attention& a) {
    const bool adds_nothing = a.scale > 0 && !a.mask.defined() && !a.slopes.defined();
    const int64_t queries = a.queries.longest, keys = a.keys.longest;  // a cache has more rows than it holds keys
    const bool sees_plainly = a.left == kUnbounded && (a.right == kUnbounded || (is_causal(a) && queries <= keys));
    const bool draws_freely =
        !drops(a) || ((a.dropout.is_private || diopi::launch::drops_as_told(a.q.dtype)) && a.dropout.probability < 1);
    return a.q.dtype != diopi_dtype_float64 && adds_nothing && has_matrices(a) && sees_plainly && draws_freely &&
           keeps_log_sums(a) && queries > 1 && keys > 1 && a.q.numel > 0 && a.q.sizes[3] % alignment(a.q) == 0;
}

// A library reads and writes such rows where they lie.
bool is_aligned(const TensorView& rows) {
    if (!rows.defined() || reinterpret_cast<uintptr_t>(rows.data) % 16 != 0 || rows.strides[3] != 1) return false;
    const auto steps_well = [&](int d) {
        return rows.sizes[d] == 1 || (rows.strides[d] >= rows.sizes[3] && rows.strides[d] % alignment(rows) == 0);
    };
    return steps_well(0) && steps_well(1) && steps_well(2);
}

// Where the library finds rows: in the caller's tensors, as far as it can, or all in copies without gaps.
enum class Place { kOwn, kCopies };

bool is_lent(const TensorView& rows, Place place) { return place == Place::kOwn && is_aligned(rows); }

// Of rows that may be undefined, of the sizes of `like`. A dimension of size one gets a stride that steps over all of
// them: what a view has there may be anything.
AttentionStrides strides_of(const TensorView& rows, const TensorView& like, Place place) {
    const int64_t of_token = like.sizes[2] * like.sizes[3];
    const int64_t dense[] = {like.sizes[1] * of_token, of_token, like.sizes[3]};
    const int64_t* const steps = is_lent(rows, place) ? rows.strides : dense;
    const auto stride = [&](int d) { return like.sizes[d] == 1 ? dense[0] : steps[d]; };
    return {stride(0), stride(1), stride(2)};
}

// The rows of a problem, each beside rows of its sizes that are defined.
struct Operands {
    const TensorView *own[kAttentionParts], *like[kAttentionParts];
};

Operands operands_of(const AttentionGradients& g) {
    const Attention& a = g.attention;
    return {{&a.q, &a.k, &a.v, &a.out, &g.grad_out, &g.grad_q, &g.grad_k, &g.grad_v},
            {&a.q, &a.k, &a.v, &a.out, &a.out, &a.q, &a.k, &a.v}};
}

LibraryAttention problem_of(const AttentionGradients& g, AttentionStep step, Place place) {
    const Attention& a = g.attention;
    LibraryAttention problem{};
    problem.step = step;
    problem.dtype = a.q.dtype;
    problem.sequences = a.q.sizes[0];
    problem.heads = a.q.sizes[2];
    problem.shared_heads = a.k.sizes[2];
    problem.queries = a.queries.longest;
    problem.keys = a.keys.longest;
    problem.channels = a.q.sizes[3];
    problem.scale = a.scale;
    problem.causal = is_causal(a);
    problem.keeps_sums = a.statistics.log_sum.defined();
    problem.dropout = a.dropout.probability;
    const Operands rows = operands_of(g);
    for (int n = 0; n < kAttentionParts; ++n) problem.strides[n] = strides_of(*rows.own[n], *rows.like[n], place);
    return problem;
}

// Both steps drop the same only where the library takes both: so what decides is the same for both, not where rows lie.
bool takes_both(const AttentionGradients& g) {
    return diopi::launch::has_attention(problem_of(g, AttentionStep::kForward, Place::kCopies)) &&
           diopi::launch::has_attention(problem_of(g, AttentionStep::kBackward, Place::kCopies));
}

// The rows that the library is given for a step.
class Loans {
public:
    Loans(Context ctx, Place place) : ctx_(ctx), place_(place) {}

    void* read(const TensorView& rows) {
        if (is_lent(rows, place_)) return rows.data;
        const TensorView copy = temporary_like(ctx_, rows, rows.dtype);  // also of one that only begins elsewhere
        copy_elements(ctx_, copy, rows);
        return copy.data;
    }
    // Nobody asks for undefined rows, which the library writes all the same.
    void* written(const TensorView& rows, const TensorView& like) {
        return is_lent(rows, place_) ? rows.data : temporary_for(rows, like, like.dtype);
    }
    // (sequence, token, head, 1) without gaps between the tokens of a head.
    float* sums(const TensorView& kept, AttentionStep step) {
        if (!kept.defined()) return nullptr;
        const TensorView ours = transposed(kept, 1, 2);
        if (ours.contiguous() && ours.dtype == diopi_dtype_float32) return ours.as<float>();
        if (step == AttentionStep::kBackward) return contiguous_as(ctx_, ours, diopi_dtype_float32).as<float>();
        return static_cast<float*>(temporary_for(ours, ours, diopi_dtype_float32));
    }
    void give_back() const {
        for (int i = 0; i < count_; ++i) copy_elements(ctx_, pairs_[i].caller, pairs_[i].lent);
    }

private:
    struct Pair {
        TensorView caller, lent;
    };
    static constexpr int kMostWritten = 3;

    void* temporary_for(const TensorView& caller, const TensorView& like, diopiDtype_t dtype) {
        const TensorView lent = temporary_like(ctx_, like, dtype);
        if (caller.defined()) pairs_[count_++] = {caller, lent};
        return lent.data;
    }

    Context ctx_;
    Place place_;
    Pair pairs_[kMostWritten];
    int count_ = 0;
};

// Another seed for each call; the position is that of no weight.
struct SeedTask {
    uint64_t* words;
    ReplayedStream stream;
    DIOPI_HD void operator()(int64_t) const {
        words[0] = stream.draw(-1).first >> 1;
        for (int part = 0; part < kDraws; ++part) words[1 + part] = static_cast<uint64_t>(part) << 40;
        StoreStreamTask{words + kStreamAt, stream}(0);
    }
};

const uint64_t* seed_of(Context ctx, const Dropout& dropout) {
    auto* const words = workspace_of<uint64_t>(ctx, kStreamAt + 2);
    for_each(ctx, 1, SeedTask{words, dropout.stream});
    return words;
}

bool run(Context ctx, const AttentionGradients& g, AttentionStep step) {
    const Attention& a = g.attention;
    if (!is_plain(a) || (drops(a) && !takes_both(g))) return false;
    LibraryAttention problem = problem_of(g, step, Place::kOwn);
    Place place = Place::kOwn;
    if (!diopi::launch::has_attention(problem)) {
        if (!drops(a)) return false;
        place = Place::kCopies;
        problem = problem_of(g, step, place);
    }
    Loans loans(ctx, place);
    AttentionRows rows{};
    rows.log_sums = loans.sums(a.statistics.log_sum, step);
    if (drops(a)) rows.seed = seed_of(ctx, a.dropout);
    const Operands operands = operands_of(g);
    const bool forward = step == AttentionStep::kForward;
    for (int n = 0; n < (forward ? kGradAttended : kAttentionParts); ++n) {
        const TensorView &own = *operands.own[n], &like = *operands.like[n];
        const bool writes = n == kAttended ? forward : n > kGradAttended;
        rows.of[n] = writes ? loans.written(own, like) : loans.read(own);
    }
    passed_on(
        diopi::launch::attend(stream_of(ctx), problem, rows, [&](int64_t bytes) { return workspace(ctx, bytes); }));
    loans.give_back();
    return true;
}

}  // namespace

bool attend_in_library(Context ctx, const Attention& a) {
    const TensorView none = undefined_view();
    return run(ctx, {a, none, none, none, none}, AttentionStep::kForward);
}

bool attend_backward_in_library(Context ctx, const AttentionGradients& g) {
    return g.attention.statistics.log_sum.defined() && run(ctx, g, AttentionStep::kBackward);
}

}  // namespace diopi::kernels

#else

namespace diopi::kernels {

bool attend_in_library(Context, const Attention&) { return false; }
bool attend_backward_in_library(Context, const AttentionGradients&) { return false; }

}  // namespace diopi::kernels

#endif

#include "attention_library.h"

#if defined(DIOPI_LAUNCHER_HAS_ATTENTION)

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "attention_products.h"
#include "copy/copy.h"
#include "launch/library_attention.h"

namespace diopi::kernels {
namespace {

using diopi::launch::AttentionRows;
using diopi::launch::AttentionStep;
using diopi::launch::AttentionStrides;
using diopi::launch::LibraryAttention;

constexpr int64_t kAlignment = 8;  // in halves: 16 bytes, which libraries load at once

bool is_causal(const Attention& a) { return a.right == 0; }

// What is known without the tensors' memory. Libraries may look for the greatest product before they scale it, and do
// not foresee a causal query that no key stands at or before; for single tokens they have other kernels, which products
// serve as well.
bool is_plain(const Attention& a) {
    const bool halves = a.q.dtype == diopi_dtype_float16 || a.q.dtype == diopi_dtype_bfloat16;
    const bool adds_nothing = a.scale > 0 && !a.mask.defined() && !a.slopes.defined() && a.dropout.probability == 0;
    const int64_t queries = a.queries.longest, keys = a.keys.longest;  // a cache has more rows than it holds keys
    const bool sees_plainly = a.left == kUnbounded && (a.right == kUnbounded || (is_causal(a) && queries <= keys));
    return halves && adds_nothing && has_matrices(a) && sees_plainly && queries > 1 && keys > 1 && a.q.numel > 0 &&
           a.q.sizes[3] % kAlignment == 0;
}

// One number for each softmax, as a library lays them out.
bool keeps_dense_sums(const Attention& a) {
    const TensorView& kept = a.statistics.log_sum;
    const bool fits = kept.ndim == 4 && kept.sizes[0] == a.q.sizes[0] && kept.sizes[1] == a.q.sizes[1] &&
                      kept.sizes[2] == a.q.sizes[2] && kept.sizes[3] == 1;
    return fits && kept.dtype == diopi_dtype_float32 && !a.statistics.sum.defined() && !a.statistics.by_row &&
           transposed(kept, 1, 2).contiguous();
}

// A library reads and writes such rows where they lie.
bool is_aligned(const TensorView& rows) {
    if (reinterpret_cast<uintptr_t>(rows.data) % 16 != 0 || rows.strides[3] != 1) return false;
    const auto steps_well = [&](int d) {
        return rows.sizes[d] == 1 || (rows.strides[d] >= rows.sizes[3] && rows.strides[d] % kAlignment == 0);
    };
    return steps_well(0) && steps_well(1) && steps_well(2);
}

// Of `rows`, or of their copy without gaps where they are read from one. A dimension of size one gets a stride that
// steps over all of them: what a view has there may be anything.
AttentionStrides strides_of(const TensorView& rows) {
    const bool in_place = is_aligned(rows);
    const int64_t of_token = rows.sizes[2] * rows.sizes[3];
    const int64_t dense[] = {rows.sizes[1] * of_token, of_token, rows.sizes[3]};
    const auto stride = [&](int d) {
        if (rows.sizes[d] == 1) return dense[0];
        return in_place ? rows.strides[d] : dense[d];
    };
    return {stride(0), stride(1), stride(2)};
}

const void* readable(Context ctx, const TensorView& rows) {
    if (is_aligned(rows)) return rows.data;
    const TensorView copy = temporary_like(ctx, rows, rows.dtype);
    copy_elements(ctx, copy, rows);
    return copy.data;
}

LibraryAttention problem_of(const Attention& a, AttentionStep step) {
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
    problem.q = strides_of(a.q);
    problem.k = strides_of(a.k);
    problem.v = strides_of(a.v);
    problem.out = strides_of(a.out);
    return problem;
}

void attend_to(Context ctx, const LibraryAttention& problem, const AttentionRows& rows) {
    passed_on(
        diopi::launch::attend(stream_of(ctx), problem, rows, [&](int64_t bytes) { return workspace(ctx, bytes); }));
}

AttentionRows rows_of(Context ctx, const Attention& a) {
    AttentionRows rows{};
    rows.q = readable(ctx, a.q);
    rows.k = readable(ctx, a.k);
    rows.v = readable(ctx, a.v);
    rows.log_sums = a.statistics.log_sum.defined() ? a.statistics.log_sum.as<float>() : nullptr;
    return rows;
}

}  // namespace

bool attend_in_library(Context ctx, const Attention& a) {
    const bool sums_fit = !a.statistics.log_sum.defined() || keeps_dense_sums(a);
    if (!is_plain(a) || !sums_fit || !is_aligned(a.out)) return false;
    const LibraryAttention problem = problem_of(a, AttentionStep::kForward);
    if (!diopi::launch::has_attention(problem)) return false;
    AttentionRows rows = rows_of(ctx, a);
    rows.out = a.out.data;
    attend_to(ctx, problem, rows);
    return true;
}

bool attend_backward_in_library(Context ctx, const AttentionGradients& g) {
    const Attention& a = g.attention;
    if (!is_plain(a) || !a.statistics.log_sum.defined() || !keeps_dense_sums(a)) return false;
    const TensorView* const grads[] = {&g.grad_q, &g.grad_k, &g.grad_v};
    const auto is_written = [](const TensorView* grad) { return grad->defined() && is_aligned(*grad); };
    if (!std::all_of(std::begin(grads), std::end(grads), is_written)) return false;
    LibraryAttention problem = problem_of(a, AttentionStep::kBackward);
    problem.grad_out = strides_of(g.grad_out);
    problem.grad_q = strides_of(g.grad_q);
    problem.grad_k = strides_of(g.grad_k);
    problem.grad_v = strides_of(g.grad_v);
    if (!diopi::launch::has_attention(problem)) return false;
    AttentionRows rows = rows_of(ctx, a);
    rows.out = const_cast<void*>(readable(ctx, a.out));
    rows.grad_out = readable(ctx, g.grad_out);
    rows.grad_q = g.grad_q.data;
    rows.grad_k = g.grad_k.data;
    rows.grad_v = g.grad_v.data;
    attend_to(ctx, problem, rows);
    return true;
}

}  // namespace diopi::kernels

#else

namespace diopi::kernels {

bool attend_in_library(Context, const Attention&) { return false; }
bool attend_backward_in_library(Context, const AttentionGradients&) { return false; }

}  // namespace diopi::kernels

#endif

#include "attention_products.h"

#include <algorithm>

#include "attention_weights.h"
#include "copy/copy.h"
#include "linear_algebra/matrix.h"

namespace diopi::kernels {
namespace {

// Of a block. On a host they stay in a cache between the products, and queries that see the same keys come together; on a
// chip that runs beside the host few large launches take less time than that saves.
constexpr int64_t kMostScores = int64_t{1} << (launch::kSynchronous ? 20 : 26);
constexpr int64_t kWindowedQueries = launch::kSynchronous ? 32 : 256;

bool has_window(const Attention& a) { return a.left != kUnbounded || a.right != kUnbounded; }

// How many queries and sequences a block has.
struct BlockShape {
    int64_t queries;
    int64_t sequences;

    explicit BlockShape(const Attention& a) {
        const int64_t scores = std::max<int64_t>(1, a.q.sizes[2] * a.keys.longest);  // of one query
        const int64_t most = std::max<int64_t>(1, kMostScores / scores);
        queries = std::min(most, a.queries.longest);
        if (has_window(a)) queries = std::min(queries, kWindowedQueries);
        sequences = std::clamp<int64_t>(most / std::max<int64_t>(1, queries), 1, std::max<int64_t>(1, a.queries.count));
    }
};

// The keys that some of `queries` see.
Range seen_by(const Attention& a, const Range& queries) {
    const int64_t lag = a.keys.longest - a.queries.longest;  // query i stands at key i + lag
    const Range keys = within(a.keys.longest, queries.begin + lag - a.left, queries.end - 1 + lag + a.right);
    return keys.begin < keys.end ? keys : Range{0, 0};
}

// Calls f(block) until all scores are covered.
template <class F>
void for_each_block(const Attention& a, F&& f) {
    const BlockShape shape(a);
    for (int64_t sequence = 0; sequence < a.queries.count; sequence += shape.sequences) {
        const int64_t sequences = std::min(shape.sequences, a.queries.count - sequence);
        for (int64_t query = 0; query < a.queries.longest; query += shape.queries) {
            const Range queries{query, std::min(query + shape.queries, a.queries.longest)};
            f(ScoreBlock{sequence, sequences, queries, seen_by(a, queries)});
        }
    }
}

// Each key is seen in one block.
bool gathers_at_once(const Attention& a) {
    const Range keys = seen_by(a, {0, a.queries.longest});
    return BlockShape(a).queries == a.queries.longest && length(keys) == a.keys.longest;
}

// On a chip that runs beside the host one product takes the heads of all sequences: in (sequence, head, token, channel)
// order their matrices are one stride apart. The copies pay where many queries read them.
constexpr int64_t kQueriesOfCopies = 128;

// Rows of channels as the products take them: in the dtype of sums, channels side by side.
struct ProductRows {
    Context ctx;
    const Attention& a;
    diopiDtype_t dtype = product_dtype(a.q.dtype);
    bool joined =
        !launch::kSynchronous && a.queries.longest >= kQueriesOfCopies && std::min(a.queries.count, a.q.sizes[2]) > 1;

    bool fit(const TensorView& rows) const {
        const bool dense = rows.sizes[3] == 1 || rows.strides[3] == 1;
        return rows.dtype == dtype && dense && (!joined || rows.strides[0] == rows.strides[2] * rows.sizes[2]);
    }
    TensorView readable(const TensorView& rows) const {
        if (fit(rows)) return rows;
        const TensorView copy = temporary_of(rows);
        copy_elements(ctx, copy, rows);
        return copy;
    }
    // `rows` itself, or a temporary in its place where products cannot be summed up in it.
    TensorView writable(const TensorView& rows) const { return !rows || fit(rows) ? rows : temporary_of(rows); }
    TensorView temporary_of(const TensorView& rows) const {
        const int outer = joined ? 2 : 1;  // the dimension behind that of sequences
        return transposed(temporary_like(ctx, transposed(rows, 1, outer), dtype), 1, outer);
    }
};

// The matrices (sequence, head, token, channel) of a part of `rows`: every `share`-th head from `head` on.
TensorView matrices(const TensorView& rows, const ScoreBlock& block, const Range& tokens, int64_t head, int64_t share) {
    const TensorView sequences = narrowed(rows, 0, block.sequence, block.sequences);
    const TensorView heads = narrowed(sequences, 2, head, rows.sizes[2] / share, share);
    return transposed(narrowed(heads, 1, tokens.begin, length(tokens)), 1, 2);
}

// The products of one block. A head of k and v serves `share` of q, which are taken one after the other.
struct BlockProducts {
    Context ctx;
    const ScoreBlock& block;
    int64_t share;
    int64_t heads;

    TensorView scores(const TensorView& all, int64_t h) const { return narrowed(all, 1, h, heads / share, share); }
    TensorView of_queries(const TensorView& rows, int64_t h) const {
        return matrices(rows, block, block.queries, h, share);
    }
    TensorView of_keys(const TensorView& rows) const { return matrices(rows, block, block.keys, 0, 1); }

    // out = alpha * queries keys^T, a matrix of scores.
    void pair(const TensorView& out, const TensorView& queries, const TensorView& keys, double alpha) const {
        for (int64_t h = 0; h < share; ++h)
            multiply(ctx, scores(out, h), of_queries(queries, h), matrix_transposed(of_keys(keys)), alpha, 0);
    }
    // out = weights keys, a row for each query.
    void mix(const TensorView& out, const TensorView& weights, const TensorView& keys) const {
        for (int64_t h = 0; h < share; ++h) multiply(ctx, of_queries(out, h), scores(weights, h), of_keys(keys), 1, 0);
    }
    // out = weights^T queries, a row for each key; what is there is added where `adds`.
    void gather(const TensorView& out, const TensorView& weights, const TensorView& queries, bool adds) const {
        for (int64_t h = 0; h < share; ++h)
            multiply(ctx, of_keys(out), matrix_transposed(scores(weights, h)), of_queries(queries, h), 1,
                     adds || h > 0);
    }
};

// Memory for the scores of any block.
struct ScoreMatrix {
    void* data;
    diopiDtype_t dtype;

    ScoreMatrix(Context ctx, const Attention& a) : dtype(product_dtype(a.q.dtype)) {
        const BlockShape shape(a);
        data = workspace(ctx, shape.sequences * a.q.sizes[2] * shape.queries * ScoreBlock::pitch(a.keys.longest) *
                                  element_size(dtype));
    }
    TensorView of(const Attention& a, const ScoreBlock& block) const {
        const int64_t keys = length(block.keys);
        const int64_t sizes[] = {block.sequences, a.q.sizes[2], length(block.queries), ScoreBlock::pitch(keys)};
        return narrowed(dense_view(data, dtype, sizes, 4), 3, 0, keys);
    }
};

}  // namespace

bool has_matrices(const Attention& a) {
    const auto is_even = [](const Sequences& s) { return s.spans == nullptr && !s.table.defined(); };
    return is_even(a.queries) && is_even(a.keys) && a.k.sizes[2] > 0 && a.q.sizes[3] > 0;
}

void attend_by_products(Context ctx, const Attention& a) {
    const ProductRows rows{ctx, a};
    const TensorView q = rows.readable(a.q), k = rows.readable(a.k), v = rows.readable(a.v);
    const TensorView out = rows.writable(a.out);
    const ScoreMatrix matrix(ctx, a);
    for_each_block(a, [&](const ScoreBlock& block) {
        const BlockProducts products{ctx, block, a.q.sizes[2] / a.k.sizes[2], a.q.sizes[2]};
        const TensorView scores = matrix.of(a, block);
        products.pair(scores, q, k, a.scale);
        dispatch<Types<float, double>>(scores.dtype, [&](auto type) {
            using C = typename decltype(type)::type;
            for_each_by_teams(ctx, block.rows(a), packed_work(length(block.keys), kRowPack<C>),
                              WeighTask<C, 1, Weigh>{a, block, {scores.as<C>()}});
        });
        products.mix(out, scores, v);
    });
    copy_elements(ctx, a.out, out);
}

void attend_backward_by_products(Context ctx, const AttentionGradients& g) {
    const Attention& a = g.attention;
    const ProductRows rows{ctx, a};
    const TensorView q = rows.readable(a.q), k = rows.readable(a.k), v = rows.readable(a.v);
    const TensorView grad_out = rows.readable(g.grad_out);
    const TensorView grad_q = rows.writable(g.grad_q), grad_k = rows.writable(g.grad_k),
                     grad_v = rows.writable(g.grad_v);
    const bool adds = !gathers_at_once(a);
    for (const TensorView* sums : {&grad_k, &grad_v}) {
        if (adds && sums->defined()) fill_zero(ctx, *sums);
    }
    const ScoreMatrix of_scores(ctx, a), of_grads(ctx, a);
    for_each_block(a, [&](const ScoreBlock& block) {
        const BlockProducts products{ctx, block, a.q.sizes[2] / a.k.sizes[2], a.q.sizes[2]};
        const TensorView scores = of_scores.of(a, block), grads = of_grads.of(a, block);
        products.pair(scores, q, k, a.scale);
        products.pair(grads, grad_out, v, 1);
        dispatch<Types<float, double>>(scores.dtype, [&](auto type) {
            using C = typename decltype(type)::type;
            for_each_by_teams(ctx, block.rows(a), packed_work(length(block.keys), kRowPack<C>),
                              WeighTask<C, 2, WeighBackward>{a, block, {scores.as<C>(), grads.as<C>()}});
        });
        if (grad_q) products.mix(grad_q, grads, k);
        if (grad_k) products.gather(grad_k, grads, q, adds);
        if (grad_v) products.gather(grad_v, scores, grad_out, adds);
    });
    if (grad_q) copy_elements(ctx, g.grad_q, grad_q);
    if (grad_k) copy_elements(ctx, g.grad_k, grad_k);
    if (grad_v) copy_elements(ctx, g.grad_v, grad_v);
}

}  // namespace diopi::kernels

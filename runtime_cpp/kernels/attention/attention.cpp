#include "attention.h"

#include <initializer_list>

#include "attention_library.h"
#include "attention_pairs.h"
#include "attention_products.h"

namespace diopi::kernels {
namespace {

template <class T>
struct AttendTask {
    using C = AccumulateType<T>;

    Attention a;
    QueryTasks tasks;

    DIOPI_HD void operator()(int64_t i) const {
        const Query query = tasks.query(a, i);
        const bool keeps = tasks.part(i) == 0 && a.statistics.log_sum.defined();
        RunningMix<C> mix{Channels<C>(tasks.part(i), a.q.sizes[3])};
        if (query.exists) {
            for_each_key<T>(a, query,
                            [&](const Pair<T>& pair) { mix.add(pair.score, pair.factor, pair.v, a.v.strides[3]); });
            mix.finish();
            mix.channels.store(row_of<T>(a.out, query.sequence, query.row, query.head), a.out.strides[3]);
        }
        // behind a shorter sequence there are statistics of nothing, unless they are kept by row
        if (keeps && (query.exists || !a.statistics.by_row))
            a.statistics.store(statistic_at(a, query), static_cast<double>(mix.softmax.greatest), mix.softmax.sum);
    }
};

void require_statistics(const Attention& a) {
    const Statistics& statistics = a.statistics;
    const int64_t tokens = statistics.by_row ? a.q.sizes[1] : a.queries.longest;
    for (const TensorView* kept : {&statistics.log_sum, &statistics.sum}) {
        if (!kept->defined()) continue;
        require(kept->ndim == 4 && kept->sizes[0] == (statistics.by_row ? 1 : a.queries.count) &&
                    kept->sizes[1] == tokens && kept->sizes[2] == a.q.sizes[2],
                "what is kept of the softmax has one place for each sequence, head and query");
        require_storable(*kept);
    }
}

}  // namespace

void require_heads(const TensorView& tensor, const TensorView& like, const char* name) {
    if (tensor.dtype != like.dtype) fail_dtype(tensor.dtype);
    require(tensor.same_sizes(like), "'%s' has another shape than the tensor it belongs to", name);
}

void require_consistent(const Attention& a) {
    const TensorView &q = a.q, &k = a.k;
    require(q.ndim == 4 && k.ndim == 4, "attention is over (sequence, token, head, channel)");
    require_heads(a.out, q, "out");
    require_heads(a.v, k, "v");
    if (k.dtype != q.dtype) fail_dtype(k.dtype);
    require(q.sizes[3] == k.sizes[3], "queries have %lld channels and keys %lld", q.sizes[3], k.sizes[3]);
    require(q.sizes[2] == 0 || (k.sizes[2] > 0 && q.sizes[2] % k.sizes[2] == 0),
            "%lld heads of keys do not serve %lld heads of queries alike", k.sizes[2], q.sizes[2]);
    require(a.queries.count == a.keys.count, "there are %lld sequences of queries and %lld of keys", a.queries.count,
            a.keys.count);
    require(a.dropout.probability >= 0 && a.dropout.probability <= 1,
            "a probability is between 0 and 1, which %g is not", a.dropout.probability);
}

Attention even_attention(const TensorView& out, const TensorView& q, const TensorView& k, const TensorView& v) {
    require(q.ndim == 4 && k.ndim == 4, "attention is over (sequence, token, head, channel)");
    const Sequences queries = even_sequences(q.sizes[0], q.sizes[1]), keys = even_sequences(k.sizes[0], k.sizes[1]);
    return {q, k, v, out, queries, keys, 1};
}

TensorView split_heads(const TensorView& rows, int64_t channels) {
    require(rows.ndim > 0 && channels > 0 && rows.sizes[rows.ndim - 1] % channels == 0,
            "rows do not divide into heads of %lld channels", channels);
    const int last = rows.ndim - 1;
    TensorView result = with_dim(rows, last, rows.sizes[last] / channels, rows.strides[last] * channels);
    result.sizes[last + 1] = channels;
    return recounted(result);
}

// A mask may be larger than the longest sequences: they then have its upper left corner.
void Attention::set_mask(TensorView corner) {
    if (!corner) return;
    require(element_size(corner.dtype) == 1 && corner.ndim >= 2 && corner.ndim <= 4,
            "a mask is a tensor of bool over queries and keys");
    const int last = corner.ndim - 1;
    if (corner.sizes[last] > keys.longest) corner = narrowed(corner, last, 0, keys.longest);
    if (corner.sizes[last - 1] > queries.longest) corner = narrowed(corner, last - 1, 0, queries.longest);
    const int64_t sizes[] = {queries.count, q.sizes[2], queries.longest, keys.longest};
    mask = expanded(corner, sizes, 4);
}

void Attention::set_slopes(const TensorView& of_heads) {
    if (!of_heads) return;
    const int64_t sizes[] = {queries.count, q.sizes[2]};
    slopes = expanded(of_heads, sizes, 2);
}

void attend(Context ctx, const Attention& attention) {
    require_consistent(attention);
    require_statistics(attention);
    if (attend_in_library(ctx, attention)) return;
    if (has_matrices(attention)) return attend_by_products(ctx, attention);
    dispatch<Float>(attention.q.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        const QueryTasks tasks = query_tasks(attention, Channels<AccumulateType<T>>::parts(attention.q.sizes[3]));
        for_each(ctx, count_of(attention, tasks), AttendTask<T>{attention, tasks});
    });
}

}  // namespace diopi::kernels

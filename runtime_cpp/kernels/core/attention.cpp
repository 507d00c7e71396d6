#include "attention.h"

#include <initializer_list>

#include "copy.h"
#include "matrix.h"

namespace diopi::kernels {
namespace {

struct Query {
    int64_t sequence;
    int64_t head;
    int64_t index;  // in its sequence
    int64_t row;
    Range keys;  // of its sequence
    bool exists;
};

DIOPI_HD inline int64_t length(const Range& range) { return range.end - range.begin; }

DIOPI_HD inline int64_t offset(const TensorView& heads, int64_t sequence, int64_t row, int64_t head) {
    return sequence * heads.strides[0] + row * heads.strides[1] + head * heads.strides[2];
}

// Positions [0, count) cut down to [first, last].
DIOPI_HD inline Range within(int64_t count, int64_t first, int64_t last) {
    return {first < 0 ? 0 : first, last + 1 < count ? last + 1 : count};
}

DIOPI_HD inline Query query_at(const Attention& a, int64_t sequence, int64_t head, int64_t index) {
    const Range tokens = a.queries.span(sequence);
    return {sequence,
            head,
            index,
            a.queries.row(sequence, tokens.begin + index),
            a.keys.span(sequence),
            index < length(tokens)};
}

// Where the query stands among the keys.
DIOPI_HD inline int64_t place_of(const Attention& a, const Query& query) {
    return query.index + length(query.keys) - length(a.queries.span(query.sequence));
}

DIOPI_HD inline int64_t statistic_at(const Attention& a, const Query& query) {
    return offset(a.statistics.log_sum, query.sequence, a.statistics.by_row ? query.row : query.index, query.head);
}

DIOPI_HD inline bool hidden(const Attention& a, const Query& query, int64_t key) {
    return a.mask.defined() &&
           a.mask.as<uint8_t>()[offset(a.mask, query.sequence, query.index, query.head) + key * a.mask.strides[3]] != 0;
}

// A query and a key with their score and what dropout makes of its weight.
template <class T>
struct Pair {
    using C = AccumulateType<T>;

    const T* q;
    const T* k;
    const T* v;
    C score;
    C factor;
    int64_t sequence;

    DIOPI_HD Pair(const Attention& a, const Query& query, int64_t key, int64_t key_row)
        : q(a.q.as<T>() + offset(a.q, query.sequence, query.row, query.head)) {
        const int64_t shared = query.head / (a.q.sizes[2] / a.k.sizes[2]);
        k = a.k.as<T>() + offset(a.k, query.sequence, key_row, shared);
        v = a.v.as<T>() + offset(a.v, query.sequence, key_row, shared);
        score = dot<C>(q, a.q.strides[3], k, a.k.strides[3], a.q.sizes[3]) * static_cast<C>(a.scale);
        if (a.slopes.defined()) {
            const int64_t at = query.sequence * a.slopes.strides[0] + query.head * a.slopes.strides[1];
            score -= load_as<C>(a.slopes, at) * static_cast<C>(math::abs(key - place_of(a, query)));
        }
        const int64_t matrix = query.sequence * a.q.sizes[2] + query.head;
        factor = static_cast<C>(
            a.dropout.factor((matrix * a.queries.longest + query.index) * a.keys.longest + key));
    }
};

// Calls f(pair) for each key that the query sees.
template <class T, class F>
DIOPI_HD inline void for_each_key(const Attention& a, const Query& query, F&& f) {
    const int64_t place = place_of(a, query);
    const Range seen = within(length(query.keys), place - a.left, place + a.right);
    for (int64_t key = seen.begin; key < seen.end; ++key) {
        if (hidden(a, query, key)) continue;
        f(Pair<T>(a, query, key, a.keys.row(query.sequence, query.keys.begin + key)));
    }
}

// A task per query and part of the channels, in the order sequence, head, query, part.
struct QueryTasks {
    int64_t parts;
    int64_t queries;
    int64_t heads;

    DIOPI_HD int64_t part(int64_t i) const { return i % parts; }
    DIOPI_HD Query query(const Attention& a, int64_t i) const {
        const int64_t row = i / parts;
        return query_at(a, row / queries / heads, row / queries % heads, row % queries);
    }
};

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
            for_each_key<T>(a, query, [&](const Pair<T>& pair) {
                mix.add(pair.score, pair.factor, pair.v, a.v.strides[3]);
            });
            mix.finish();
            mix.channels.store(a.out.as<T>() + offset(a.out, query.sequence, query.row, query.head), a.out.strides[3]);
        }
        // behind a shorter sequence there are statistics of nothing, unless they are kept by row
        if (keeps && (query.exists || !a.statistics.by_row))
            a.statistics.store(statistic_at(a, query), static_cast<double>(mix.softmax.greatest), mix.softmax.sum);
    }
};

// Of one query: what turns scores into weights, and the mean of the weights' gradients, which is taken off each. Worked
// out from the scores again, and the mean as its distance from the gradient of the greatest weight: where that weight
// is nearly one, a stored logarithm of the sum and the mean itself would leave no digits of the difference.
template <class C>
struct Normalizer {
    RunningSoftmax<C> softmax;
    C at_greatest = 0;
    double distance = 0;  // times the sum, until all have come

    DIOPI_HD void add(C score, C grad_weight) {
        if (score > softmax.greatest) {
            distance += static_cast<double>(at_greatest - grad_weight) * softmax.sum;
            at_greatest = grad_weight;
        }
        distance *= static_cast<double>(softmax.shrink(score));
        distance += static_cast<double>(softmax.weight(score) * (grad_weight - at_greatest));
    }

    DIOPI_HD C weight(C score) const {
        return static_cast<C>(static_cast<double>(math::exp(score - softmax.greatest)) / softmax.sum);
    }
    DIOPI_HD C grad_score(C score, C grad_weight) const {
        return weight(score) * (grad_weight - at_greatest - static_cast<C>(distance / softmax.sum));
    }
};

template <class T>
struct Chain {
    using C = AccumulateType<T>;

    const T* grad;  // of the query's output
    int64_t stride;

    DIOPI_HD Chain(const AttentionGradients& g, const Query& query)
        : grad(g.grad_out.as<T>() + offset(g.grad_out, query.sequence, query.row, query.head)),
          stride(g.grad_out.strides[3]) {}

    DIOPI_HD C grad_weight(const Attention& a, const Pair<T>& pair) const {
        return dot<C>(grad, stride, pair.v, a.v.strides[3], a.v.sizes[3]) * pair.factor;
    }

    DIOPI_HD C grad_score(const Attention& a, const Pair<T>& pair, const Normalizer<C>& normal) const {
        return normal.grad_score(pair.score, grad_weight(a, pair)) * static_cast<C>(a.scale);
    }
};

template <class T>
struct NormalizeTask {
    using C = AccumulateType<T>;

    AttentionGradients g;
    QueryTasks tasks;
    Normalizer<C>* normalizers;

    DIOPI_HD void operator()(int64_t i) const {
        const Query query = tasks.query(g.attention, i);
        if (!query.exists) return;
        const Chain<T> chain(g, query);
        Normalizer<C> normal;
        for_each_key<T>(g.attention, query, [&](const Pair<T>& pair) {
            normal.add(pair.score, chain.grad_weight(g.attention, pair));
        });
        normalizers[i] = normal;
    }
};

template <class T>
struct GradQueryTask {
    using C = AccumulateType<T>;

    AttentionGradients g;
    QueryTasks tasks;
    const Normalizer<C>* normalizers;

    DIOPI_HD void operator()(int64_t i) const {
        const Attention& a = g.attention;
        const Query query = tasks.query(a, i);
        if (!query.exists) return;
        const Chain<T> chain(g, query);
        Channels<C> sums(tasks.part(i), a.q.sizes[3]);
        for_each_key<T>(a, query, [&](const Pair<T>& pair) {
            sums.add(chain.grad_score(a, pair, normalizers[i / tasks.parts]), pair.k, a.k.strides[3]);
        });
        sums.store(g.grad_q.as<T>() + offset(g.grad_q, query.sequence, query.row, query.head), g.grad_q.strides[3]);
    }
};

// A task per key, of the heads of k, and part of the channels: it gathers from all queries that see the key.
template <class T>
struct GradKeyTask {
    using C = AccumulateType<T>;

    AttentionGradients g;
    QueryTasks tasks;
    const Normalizer<C>* normalizers;

    DIOPI_HD void operator()(int64_t i) const {
        const Attention& a = g.attention;
        const int64_t part = i % tasks.parts;
        const int64_t key = i / tasks.parts % a.keys.longest;
        const int64_t head = i / tasks.parts / a.keys.longest % a.k.sizes[2];
        const int64_t sequence = i / tasks.parts / a.keys.longest / a.k.sizes[2];
        const Range keys = a.keys.span(sequence);
        if (key >= length(keys)) return;
        const int64_t row = a.keys.row(sequence, keys.begin + key);
        Channels<C> of_key(part, a.q.sizes[3]), of_value(part, a.q.sizes[3]);
        const int64_t share = a.q.sizes[2] / a.k.sizes[2];
        for (int64_t h = head * share; h < (head + 1) * share; ++h) gather(of_key, of_value, sequence, h, key, row);
        if (g.grad_k) of_key.store(g.grad_k.as<T>() + offset(g.grad_k, sequence, row, head), g.grad_k.strides[3]);
        if (g.grad_v) of_value.store(g.grad_v.as<T>() + offset(g.grad_v, sequence, row, head), g.grad_v.strides[3]);
    }

    DIOPI_HD void gather(Channels<C>& of_key, Channels<C>& of_value, int64_t sequence, int64_t head, int64_t key,
                         int64_t row) const {
        const Attention& a = g.attention;
        const int64_t queries = length(a.queries.span(sequence));
        const int64_t at = key - length(a.keys.span(sequence)) + queries;  // the query that stands at the key
        const Range seeing = within(queries, at - a.right, at + a.left);
        for (int64_t index = seeing.begin; index < seeing.end; ++index) {
            const Query query = query_at(a, sequence, head, index);
            if (hidden(a, query, key)) continue;
            const Pair<T> pair(a, query, key, row);
            const Chain<T> chain(g, query);
            const Normalizer<C>& normal = normalizers[(sequence * tasks.heads + head) * tasks.queries + index];
            of_key.add(chain.grad_score(a, pair, normal), pair.q, a.q.strides[3]);
            of_value.add(normal.weight(pair.score) * pair.factor, chain.grad, chain.stride);
        }
    }
};

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
    require(q.sizes[3] == k.sizes[3], "queries have %lld channels and keys %lld", static_cast<long long>(q.sizes[3]),
            static_cast<long long>(k.sizes[3]));
    require(q.sizes[2] == 0 || (k.sizes[2] > 0 && q.sizes[2] % k.sizes[2] == 0), "%lld heads of keys do not serve %lld heads of queries alike",
            static_cast<long long>(k.sizes[2]), static_cast<long long>(q.sizes[2]));
    require(a.queries.count == a.keys.count, "there are %lld sequences of queries and %lld of keys",
            static_cast<long long>(a.queries.count), static_cast<long long>(a.keys.count));
    require(a.dropout.probability >= 0 && a.dropout.probability <= 1,
            "a probability is between 0 and 1, which %g is not", a.dropout.probability);
}

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

QueryTasks query_tasks(const Attention& a, int64_t parts) { return {parts, a.queries.longest, a.q.sizes[2]}; }

int64_t count_of(const Attention& a, const QueryTasks& tasks) {
    return a.queries.count * tasks.heads * tasks.queries * tasks.parts;
}

template <class T>
void backward(diopiContextHandle_t ctx, const AttentionGradients& g) {
    using C = AccumulateType<T>;
    const Attention& a = g.attention;
    const QueryTasks whole = query_tasks(a, 1), parts = query_tasks(a, Channels<C>::parts(a.q.sizes[3]));
    auto* normalizers = workspace_of<Normalizer<C>>(ctx, count_of(a, whole));
    for_each(ctx, count_of(a, whole), NormalizeTask<T>{g, whole, normalizers});
    if (g.grad_q) for_each(ctx, count_of(a, parts), GradQueryTask<T>{g, parts, normalizers});
    const int64_t keys = a.keys.count * a.k.sizes[2] * a.keys.longest;
    if (g.grad_k || g.grad_v) for_each(ctx, keys * parts.parts, GradKeyTask<T>{g, parts, normalizers});
}

}  // namespace

Attention even_attention(const TensorView& out, const TensorView& q, const TensorView& k, const TensorView& v) {
    require(q.ndim == 4 && k.ndim == 4, "attention is over (sequence, token, head, channel)");
    Attention attention{q, k, v, out, even_sequences(q.sizes[0], q.sizes[1]), even_sequences(k.sizes[0], k.sizes[1]), 1};
    return attention;
}

TensorView split_heads(const TensorView& rows, int64_t channels) {
    require(rows.ndim > 0 && channels > 0 && rows.sizes[rows.ndim - 1] % channels == 0,
            "rows do not divide into heads of %lld channels", static_cast<long long>(channels));
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
    mask = transposed(expanded(corner, sizes, 4), 1, 2);  // offset() takes the head last
}

void Attention::set_slopes(const TensorView& of_heads) {
    if (!of_heads) return;
    const int64_t sizes[] = {queries.count, q.sizes[2]};
    slopes = expanded(of_heads, sizes, 2);
}

void attend(diopiContextHandle_t ctx, const Attention& attention) {
    require_consistent(attention);
    require_statistics(attention);
    dispatch<Float>(attention.q.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        const QueryTasks tasks =
            query_tasks(attention, Channels<AccumulateType<T>>::parts(attention.q.sizes[3]));
        for_each(ctx, count_of(attention, tasks), AttendTask<T>{attention, tasks});
    });
}

void attend_backward(diopiContextHandle_t ctx, const AttentionGradients& gradients) {
    const Attention& a = gradients.attention;
    require_consistent(a);
    require_heads(gradients.grad_out, a.out, "grad_output");
    if (gradients.grad_q) require_heads(gradients.grad_q, a.q, "grad_q");
    if (gradients.grad_k) require_heads(gradients.grad_k, a.k, "grad_k");
    if (gradients.grad_v) require_heads(gradients.grad_v, a.v, "grad_v");
    for (const TensorView* grad : {&gradients.grad_q, &gradients.grad_k, &gradients.grad_v}) {
        if (grad->defined() && (a.queries.spans != nullptr || a.keys.spans != nullptr)) fill_zero(ctx, *grad);
    }
    dispatch<Float>(a.q.dtype, [&](auto type) { backward<typename decltype(type)::type>(ctx, gradients); });
}

}  // namespace diopi::kernels

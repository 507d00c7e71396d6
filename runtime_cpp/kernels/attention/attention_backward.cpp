#include "attention_library.h"
#include "attention_pairs.h"
#include "attention_products.h"
#include "copy/copy.h"

namespace diopi::kernels {
namespace {

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
        : grad(row_of<T>(g.grad_out, query.sequence, query.row, query.head)),
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
        for_each_key<T>(g.attention, query,
                        [&](const Pair<T>& pair) { normal.add(pair.score, chain.grad_weight(g.attention, pair)); });
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
        sums.store(row_of<T>(g.grad_q, query.sequence, query.row, query.head), g.grad_q.strides[3]);
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
        const int64_t part = i % tasks.parts, key = i / tasks.parts % a.keys.longest;
        const int64_t head = i / tasks.parts / a.keys.longest % a.k.sizes[2];
        const int64_t sequence = i / tasks.parts / a.keys.longest / a.k.sizes[2];
        const Range keys = a.keys.span(sequence);
        if (key >= length(keys)) return;
        const int64_t row = a.keys.row(sequence, keys.begin + key);
        Channels<C> of_key(part, a.q.sizes[3]), of_value(part, a.q.sizes[3]);
        const int64_t share = a.q.sizes[2] / a.k.sizes[2];
        for (int64_t h = head * share; h < (head + 1) * share; ++h) gather(of_key, of_value, sequence, h, key, row);
        if (g.grad_k) of_key.store(row_of<T>(g.grad_k, sequence, row, head), g.grad_k.strides[3]);
        if (g.grad_v) of_value.store(row_of<T>(g.grad_v, sequence, row, head), g.grad_v.strides[3]);
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

template <class T>
void backward(Context ctx, const AttentionGradients& g) {
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

void attend_backward(Context ctx, const AttentionGradients& gradients) {
    const Attention& a = gradients.attention;
    require_consistent(a);
    require_heads(gradients.grad_out, a.out, "grad_output");
    if (gradients.grad_q) require_heads(gradients.grad_q, a.q, "grad_q");
    if (gradients.grad_k) require_heads(gradients.grad_k, a.k, "grad_k");
    if (gradients.grad_v) require_heads(gradients.grad_v, a.v, "grad_v");
    if (attend_backward_in_library(ctx, gradients)) return;
    if (has_matrices(a)) return attend_backward_by_products(ctx, gradients);
    for (const TensorView* grad : {&gradients.grad_q, &gradients.grad_k, &gradients.grad_v}) {
        if (grad->defined() && (a.queries.spans != nullptr || a.keys.spans != nullptr)) fill_zero(ctx, *grad);
    }
    dispatch<Float>(a.q.dtype, [&](auto type) { backward<typename decltype(type)::type>(ctx, gradients); });
}

}  // namespace diopi::kernels

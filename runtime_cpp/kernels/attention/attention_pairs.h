// Queries, and pairs of a query and a key with their score: what attention and its gradients are loops over.
#pragma once

#include "attention.h"
#include "space/element.h"

namespace diopi::kernels {

struct Query {
    int64_t sequence;
    int64_t head;
    int64_t index;  // in its sequence
    int64_t row;
    Range keys;  // of its sequence
    bool exists;
};

// The channels of a head; null where there are none.
template <class T>
DIOPI_HD inline T* row_of(const TensorView& heads, int64_t sequence, int64_t row, int64_t head) {
    return heads.data == nullptr ? nullptr : heads.as<T>() + offset_of(heads, sequence, row, head);
}

DIOPI_HD inline int64_t length(const Range& range) { return range.end - range.begin; }

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
    return offset_of(a.statistics.log_sum, query.sequence, a.statistics.by_row ? query.row : query.index, query.head);
}

DIOPI_HD inline bool hidden(const Attention& a, const Query& query, int64_t key) {
    return a.mask.defined() && element<uint8_t>(a.mask, query.sequence, query.head, query.index, key) != 0;
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
        : q(row_of<T>(a.q, query.sequence, query.row, query.head)) {
        const int64_t shared = query.head / (a.q.sizes[2] / a.k.sizes[2]);
        k = row_of<T>(a.k, query.sequence, key_row, shared);
        v = row_of<T>(a.v, query.sequence, key_row, shared);
        score = dot<C>(q, a.q.strides[3], k, a.k.strides[3], a.q.sizes[3]) * static_cast<C>(a.scale);
        if (a.slopes.defined()) {
            const C slope = number_at<C>(a.slopes, query.sequence, query.head);
            score -= slope * static_cast<C>(math::abs(key - place_of(a, query)));
        }
        const int64_t matrix = query.sequence * a.q.sizes[2] + query.head;
        factor = static_cast<C>(a.dropout.factor((matrix * a.queries.longest + query.index) * a.keys.longest + key));
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

inline QueryTasks query_tasks(const Attention& a, int64_t parts) { return {parts, a.queries.longest, a.q.sizes[2]}; }

inline int64_t count_of(const Attention& a, const QueryTasks& tasks) {
    return a.queries.count * tasks.heads * tasks.queries * tasks.parts;
}

// Fails unless `tensor` has the dtype and the shape of `like`.
void require_heads(const TensorView& tensor, const TensorView& like, const char* name);

// Fails unless q, k, v, out and the sequences belong together.
void require_consistent(const Attention& attention);

}  // namespace diopi::kernels

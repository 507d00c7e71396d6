// Attention of a language model at work: prompts of different lengths, and new tokens over a cache of keys and values.
#include <diopi/diopirt.h>

#include <initializer_list>

#include "attention/attention.h"
#include "copy/copy.h"
#include "core/host_list.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

double scale_of(int64_t channels) { return 1.0 / math::sqrt(static_cast<double>(channels)); }

// Rows of heads, of `length` rows per sequence, as (sequence, token, head, channel).
TensorView padded_heads(const TensorView& rows, int64_t length, int64_t heads, int64_t channels) {
    const TensorView list = rows.ndim > 2 && joins(rows, 0, rows.ndim - 2) ? joined(rows, 0, rows.ndim - 2) : rows;
    require(list.ndim == 2, "expected rows of heads, got %d dimensions", rows.ndim);
    require(list.sizes[1] == heads * channels, "a row does not hold %lld heads of %lld channels", heads, channels);
    require(length > 0 && list.sizes[0] % length == 0, "%lld rows do not divide into sequences of %lld", list.sizes[0],
            length);
    const TensorView split = split_heads(list, channels);
    TensorView result = with_dim(split, 0, list.sizes[0] / length, split.strides[0] * length);
    result.sizes[1] = length;
    return recounted(result);
}

// The tokens of sequence b: those of the last b_seq_len[b] of the first max_input_len entries of b_loc[b].
Sequences located_tokens(Context ctx, ConstTensor locations, const TensorView& lengths, int64_t max_input_len) {
    const TensorView table = required_view(locations, "b_loc");
    require(table.ndim == 2 && is_in<Index>(table.dtype), "'b_loc' is a matrix of int32 or int64");
    require(max_input_len <= table.sizes[1], "'b_loc' has less than %lld entries for a sequence", max_input_len);
    require_list(lengths, "b_seq_len");
    require(lengths.numel == table.sizes[0], "'b_seq_len' and 'b_loc' have one entry for each sequence");
    const SpansUpTo spans{max_input_len, lengths};
    Sequences tokens = sequences_of(ctx, lengths.numel, max_input_len, max_input_len, spans);
    tokens.table = table;
    return tokens;
}

// Where the scores of the sequences lie among those of all: columns of (head, token).
Sequences score_columns(Context ctx, ConstTensor starts, const TensorView& lengths, const TensorView& scores,
                        int64_t max_input_len) {
    const TensorView first = required_view(starts, "b_start_loc");
    require_list(first, "b_start_loc");
    require_same_sizes(first, lengths, "b_start_loc", "b_seq_len");
    require(scores.ndim == 2, "scores are (head, token)");
    return sequences_of(ctx, lengths.numel, max_input_len, scores.sizes[1], SpansByLengths{first, lengths});
}

template <class T>
struct ScoreTask {
    using C = AccumulateType<T>;

    TensorView scores;  // (head, column)
    TensorView q;       // (sequence, head, channel)
    TensorView k;       // (row, head, channel)
    Sequences tokens;
    Sequences columns;
    C scale;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t index = i % tokens.longest;
        const int64_t head = i / tokens.longest % q.sizes[1], sequence = i / tokens.longest / q.sizes[1];
        const Range span = tokens.span(sequence), place = columns.span(sequence);
        if (index >= span.end - span.begin || index >= place.end - place.begin) return;
        const int64_t row = tokens.row(sequence, span.begin + index);
        const T* query = &element<T>(q, sequence, head);
        const T* key = &element<T>(k, row, head);
        element<T>(scores, head, place.begin + index) =
            cast<T>(dot<C>(query, q.strides[2], key, k.strides[2], q.sizes[2]) * scale);
    }
};

template <class T>
struct MixTask {
    using C = AccumulateType<T>;

    TensorView out;     // (sequence, head, channel)
    TensorView scores;  // (head, column)
    TensorView v;       // (row, head, channel)
    Sequences tokens;
    Sequences columns;
    int64_t parts;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t head = i / parts % v.sizes[1], sequence = i / parts / v.sizes[1];
        const Range span = tokens.span(sequence), place = columns.span(sequence);
        RunningMix<C> mix{Channels<C>(i % parts, v.sizes[2])};
        for (int64_t at = 0; at < span.end - span.begin && at < place.end - place.begin; ++at) {
            const int64_t row = tokens.row(sequence, span.begin + at);
            const C score = cast<C>(element<T>(scores, head, place.begin + at));
            mix.add(score, C(1), &element<T>(v, row, head), v.strides[2]);
        }
        mix.finish();
        mix.channels.store(&element<T>(out, sequence, head), out.strides[2]);
    }
};

}  // namespace

diopiError_t diopiTokenAttentionInference(Context ctx, Tensor token_attention_out, ConstTensor q, ConstTensor k,
                                          ConstTensor b_loc, ConstTensor b_start_loc, ConstTensor b_seq_len,
                                          int max_input_len) {
    return guarded([&] {
        const TensorView scores = required_view(token_attention_out, "token_attention_out");
        const TensorView queries = required_view(q, "q"), keys = required_view(k, "k");
        const TensorView lengths = required_view(b_seq_len, "b_seq_len");
        require(queries.ndim == 3 && keys.ndim == 3 && queries.sizes[1] == keys.sizes[1] &&
                    queries.sizes[2] == keys.sizes[2] && queries.sizes[0] == lengths.numel,
                "'q' is (sequence, head, channel) and 'k' (row, head, channel)");
        for (const TensorView& operand : {queries, keys}) require_dtype(operand, scores.dtype);
        const Sequences tokens = located_tokens(ctx, b_loc, lengths, max_input_len);
        const Sequences columns = score_columns(ctx, b_start_loc, lengths, scores, max_input_len);
        require(scores.sizes[0] == queries.sizes[1], "'token_attention_out' has a row for each head");
        dispatch<Float>(scores.dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            const auto scale = static_cast<AccumulateType<T>>(scale_of(queries.sizes[2]));
            for_each(ctx, tokens.count * queries.sizes[1] * tokens.longest,
                     ScoreTask<T>{scores, queries, keys, tokens, columns, scale});
        });
    });
}

diopiError_t diopiTokenSoftmaxReduceVInference(Context ctx, Tensor out, ConstTensor logics, ConstTensor v,
                                               ConstTensor b_loc, ConstTensor b_start_loc, ConstTensor b_seq_len,
                                               int max_input_len, int) {
    return guarded([&] {
        const TensorView result = required_view(out, "out"), scores = required_view(logics, "logics");
        const TensorView values = required_view(v, "v"), lengths = required_view(b_seq_len, "b_seq_len");
        require(result.ndim == 3 && values.ndim == 3 && result.sizes[0] == lengths.numel &&
                    result.sizes[1] == values.sizes[1] && result.sizes[2] == values.sizes[2],
                "'out' is (sequence, head, channel) and 'v' (row, head, channel)");
        for (const TensorView& operand : {scores, values}) require_dtype(operand, result.dtype);
        const Sequences tokens = located_tokens(ctx, b_loc, lengths, max_input_len);
        const Sequences columns = score_columns(ctx, b_start_loc, lengths, scores, max_input_len);
        require(scores.sizes[0] == values.sizes[1], "'logics' has a row for each head");
        dispatch<Float>(result.dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            const int64_t parts = Channels<AccumulateType<T>>::parts(values.sizes[2]);
            for_each(ctx, tokens.count * values.sizes[1] * parts,
                     MixTask<T>{result, scores, values, tokens, columns, parts});
        });
    });
}

diopiError_t diopiContextAttentionInference(Context ctx, Tensor context_attention_out, ConstTensor q, ConstTensor k,
                                            ConstTensor v, ConstTensor b_start_loc, ConstTensor b_seq_len,
                                            int max_input_len) {
    return guarded([&] {
        const TensorView starts = required_view(b_start_loc, "b_start_loc");
        const TensorView lengths = required_view(b_seq_len, "b_seq_len");
        require_list(starts, "b_start_loc");
        require_list(lengths, "b_seq_len");
        require_same_sizes(starts, lengths, "b_start_loc", "b_seq_len");
        Attention a = even_attention(as_rows_of_all(required_view(context_attention_out, "context_attention_out")),
                                     as_rows_of_all(required_view(q, "q")), as_rows_of_all(required_view(k, "k")),
                                     as_rows_of_all(required_view(v, "v")));
        const SpansByLengths spans{starts, lengths};
        a.queries = sequences_of(ctx, lengths.numel, max_input_len, a.q.sizes[1], spans);
        a.keys = sequences_of(ctx, lengths.numel, max_input_len, a.k.sizes[1], spans);
        a.scale = scale_of(a.q.sizes[3]);
        a.set_window(true, -1, -1);
        fill_zero(ctx, a.out);
        attend(ctx, a);
    });
}

diopiError_t diopiPromptFlashAttention(Context ctx, Tensor out, ConstTensor query, ConstTensor key, ConstTensor value,
                                       ConstTensor atten_mask, Sizes actual_seq_lengths, int64_t max_input_len,
                                       int64_t num_heads, int64_t num_kv_heads, int64_t dim) {
    return guarded([&] {
        const auto heads = [&](ConstTensor handle, const char* name, int64_t count) {
            return padded_heads(required_view(handle, name), max_input_len, count, dim);
        };
        Attention a = even_attention(heads(out, "out", num_heads), heads(query, "query", num_heads),
                                     heads(key, "key", num_kv_heads), heads(value, "value", num_kv_heads));
        require(actual_seq_lengths.len == a.q.sizes[0], "'actual_seq_lengths' has one entry for each sequence");
        const SpansByLengths spans{undefined_view(), on_device(ctx, actual_seq_lengths)};
        a.queries = sequences_of(ctx, a.q.sizes[0], max_input_len, max_input_len, spans);
        a.keys = a.queries;
        a.scale = scale_of(dim);
        a.set_window(true, -1, -1);
        a.set_mask(view(atten_mask));
        fill_zero(ctx, a.out);
        attend(ctx, a);
    });
}

diopiError_t diopiPagedAttention(Context ctx, Tensor out, ConstTensor q, ConstTensor k, ConstTensor v,
                                 ConstTensor attenMask, Sizes actual_seq_lengths, int64_t num_heads,
                                 int64_t num_kv_heads, int64_t dim, ConstTensor block_table, int64_t block_size) {
    return guarded([&] {
        const TensorView cache = required_view(k, "k"), table = required_view(block_table, "block_table");
        require(table.ndim == 2 && is_in<Index>(table.dtype), "'block_table' is a matrix of int32 or int64");
        require(block_size > 0 && table.sizes[0] == actual_seq_lengths.len,
                "'block_table' names blocks of one row or more for each of the sequences");
        require(num_kv_heads > 0 && dim > 0, "the caches need a head and a channel");
        const auto rows = [&](const TensorView& tensor) {
            return padded_heads(tensor, tensor.numel / (num_kv_heads * dim), num_kv_heads, dim);
        };
        Attention a = even_attention(padded_heads(required_view(out, "out"), 1, num_heads, dim),
                                     padded_heads(required_view(q, "q"), 1, num_heads, dim), rows(cache),
                                     rows(required_view(v, "v")));
        const int64_t positions = table.sizes[1] * block_size;
        a.k.strides[0] = a.v.strides[0] = 0;  // all sequences share the cache
        a.keys = sequences_of(ctx, table.sizes[0], positions, positions,
                              SpansByLengths{undefined_view(), on_device(ctx, actual_seq_lengths)});
        a.keys.table = table;
        a.keys.block_size = block_size;
        a.scale = scale_of(dim);
        const TensorView mask = view(attenMask);
        if (mask) {
            require(mask.ndim == 2, "'attenMask' is (sequence, token)");
            a.set_mask(with_dim(with_dim(mask, 1, 1, 0), 1, 1, 0));
        }
        attend(ctx, a);
    });
}

}  // namespace impl::portable

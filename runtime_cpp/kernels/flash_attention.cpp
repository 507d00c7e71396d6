// FlashAttention and MultiHeadAttention, of sequences of one length and of different lengths, with their gradients.
#include <diopi/diopirt.h>

#include "core/attention.h"
#include "core/copy.h"
#include "core/index.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

struct Tensors {
    ConstTensor out;
    ConstTensor q;
    ConstTensor k;
    ConstTensor v;
    ConstTensor log_sum;
};

struct Options {
    double scale;
    bool causal;
    int64_t left = -1;
    int64_t right = -1;
    ConstTensor slopes = nullptr;
};

void set_options(Attention& attention, const Options& options, const TensorView& log_sum) {
    attention.scale = options.scale;
    attention.set_window(options.causal, options.left, options.right);
    attention.set_slopes(view(options.slopes));
    require(log_sum.ndim == 3, "'softmax_lse' is (sequence, head, query)");
    attention.statistics.log_sum = with_dim(transposed(log_sum, 1, 2), 3, 1, 0);
}

Attention attention_of(const Tensors& tensors, const Options& options) {
    Attention attention = even_attention(required_view(tensors.out, "out"), required_view(tensors.q, "q"),
                                         required_view(tensors.k, "k"), required_view(tensors.v, "v"));
    set_options(attention, options, required_view(tensors.log_sum, "softmax_lse"));
    return attention;
}

// Sequences behind each other, by where each of them ends.
struct Ends {
    ConstTensor q;
    ConstTensor k;
    int64_t longest_q;
    int64_t longest_k;
};

Attention attention_of(Context ctx, const Tensors& tensors, const Ends& ends, const Options& options) {
    Attention attention = even_attention(
        as_rows_of_all(required_view(tensors.out, "out")), as_rows_of_all(required_view(tensors.q, "q")),
        as_rows_of_all(required_view(tensors.k, "k")), as_rows_of_all(required_view(tensors.v, "v")));
    const TensorView ends_q = required_view(ends.q, "cum_seq_q");
    const TensorView ends_k = required_view(ends.k, "the ends of the keys");
    require_list(ends_q, "cum_seq_q");
    require_list(ends_k, "the ends of the keys");
    attention.queries = sequences_of(ctx, ends_q.numel - 1, ends.longest_q, attention.q.sizes[1], SpansByEnds{ends_q});
    attention.keys = sequences_of(ctx, ends_k.numel - 1, ends.longest_k, attention.k.sizes[1], SpansByEnds{ends_k});
    set_options(attention, options, required_view(tensors.log_sum, "softmax_lse"));
    return attention;
}

Dropout drawn(Generator generator, double probability) {
    return {probability, probability == 0 ? RandomStream{0, 0} : next_stream(generator), nullptr};
}

Dropout drawn_again(Generator generator, double probability) {
    return {probability, probability == 0 ? RandomStream{0, 0} : last_stream(generator), nullptr};
}

struct KeptTask {
    Space<1> space;
    TensorView kept;
    Dropout dropout;
    DIOPI_HD void operator()(int64_t i) const { store_as(kept, space.offset(i), dropout.factor(i) != 0); }
};

// Which weights were kept, of all sequences, heads, queries and keys.
void show_kept(Context ctx, const Attention& a, Tensor mask) {
    const TensorView kept = required_view(mask, "debug_attn_mask");
    const int64_t sizes[] = {a.queries.count, a.q.sizes[2], a.queries.longest, a.keys.longest};
    require_same_sizes(kept, dense_view(nullptr, kept.dtype, sizes, 4), "debug_attn_mask", "the matrix of weights");
    require_storable(kept);
    for_each(ctx, kept.numel, KeptTask{space_of(kept), kept, a.dropout});
}

void run_ragged(Context ctx, const Attention& attention) {
    fill_zero(ctx, attention.out);
    attend(ctx, attention);
}

struct Gradients {
    Tensor q;
    Tensor k;
    Tensor v;
    ConstTensor out;
};

void run_backward(Context ctx, const Attention& attention, const Gradients& grads) {
    attend_backward(ctx, {attention, required_view(grads.out, "grad_output"), view(grads.q), view(grads.k),
                          view(grads.v)});
}

void run_ragged_backward(Context ctx, const Attention& attention, const Gradients& grads) {
    const auto rows = [](ConstTensor handle) {
        return handle == nullptr ? undefined_view() : as_rows_of_all(view(handle));
    };
    attend_backward(ctx, {attention, as_rows_of_all(required_view(grads.out, "grad_output")), rows(grads.q),
                          rows(grads.k), rows(grads.v)});
}

}  // namespace

diopiError_t diopiFlashAttention(Context ctx, Tensor attention_out, Tensor softmax_lse, Generator gen, ConstTensor q,
                                 ConstTensor k, ConstTensor v, ConstTensor alibi_slopes, float p_dropout,
                                 float softmax_scale, bool is_causal, int32_t window_size_left,
                                 int32_t window_size_right) {
    return guarded([&] {
        Attention attention =
            attention_of({attention_out, q, k, v, softmax_lse},
                         {softmax_scale, is_causal, window_size_left, window_size_right, alibi_slopes});
        attention.dropout = drawn(gen, p_dropout);
        attend(ctx, attention);
    });
}

diopiError_t diopiFlashAttentionBackward(Context ctx, Tensor grad_q, Tensor grad_k, Tensor grad_v,
                                         ConstTensor grad_output, Generator gen, ConstTensor q, ConstTensor k,
                                         ConstTensor v, ConstTensor alibi_slopes, ConstTensor attention_out,
                                         ConstTensor softmax_lse, float p_dropout, float softmax_scale, bool is_causal,
                                         int32_t window_size_left, int32_t window_size_right) {
    return guarded([&] {
        Attention attention =
            attention_of({attention_out, q, k, v, softmax_lse},
                         {softmax_scale, is_causal, window_size_left, window_size_right, alibi_slopes});
        attention.dropout = drawn_again(gen, p_dropout);
        run_backward(ctx, attention, {grad_q, grad_k, grad_v, grad_output});
    });
}

diopiError_t diopiFlashAttentionVarLen(Context ctx, Tensor attention_out, Tensor softmax_lse, Generator gen,
                                       ConstTensor q, ConstTensor k, ConstTensor v, ConstTensor cum_seq_q,
                                       ConstTensor cum_seq_kv, ConstTensor alibi_slopes, int32_t max_seqlen_q,
                                       int32_t max_seqlen_kv, float p_dropout, float softmax_scale, bool is_causal,
                                       int32_t window_size_left, int32_t window_size_right) {
    return guarded([&] {
        Attention attention =
            attention_of(ctx, {attention_out, q, k, v, softmax_lse},
                         {cum_seq_q, cum_seq_kv, max_seqlen_q, max_seqlen_kv},
                         {softmax_scale, is_causal, window_size_left, window_size_right, alibi_slopes});
        attention.dropout = drawn(gen, p_dropout);
        run_ragged(ctx, attention);
    });
}

diopiError_t diopiFlashAttentionVarLenBackward(Context ctx, Tensor grad_q, Tensor grad_k, Tensor grad_v,
                                               ConstTensor grad_output, Generator gen, ConstTensor q, ConstTensor k,
                                               ConstTensor v, ConstTensor cum_seq_q, ConstTensor cum_seq_kv,
                                               ConstTensor alibi_slopes, ConstTensor attention_out,
                                               ConstTensor softmax_lse, int32_t max_seqlen_q, int32_t max_seqlen_kv,
                                               float p_dropout, float softmax_scale, bool is_causal,
                                               int32_t window_size_left, int32_t window_size_right) {
    return guarded([&] {
        Attention attention =
            attention_of(ctx, {attention_out, q, k, v, softmax_lse},
                         {cum_seq_q, cum_seq_kv, max_seqlen_q, max_seqlen_kv},
                         {softmax_scale, is_causal, window_size_left, window_size_right, alibi_slopes});
        attention.dropout = drawn_again(gen, p_dropout);
        run_ragged_backward(ctx, attention, {grad_q, grad_k, grad_v, grad_output});
    });
}

diopiError_t diopiMultiHeadAttention(Context ctx, Tensor q, Tensor k, Tensor v, double dropout_p, bool is_causal,
                                     bool return_debug_mask, double scale, Tensor out, Tensor softmax_lse,
                                     Generator gen, Tensor debug_attn_mask) {
    return guarded([&] {
        Attention attention = attention_of({out, q, k, v, softmax_lse}, {scale, is_causal});
        attention.dropout = drawn(gen, dropout_p);
        attend(ctx, attention);
        if (return_debug_mask) show_kept(ctx, attention, debug_attn_mask);
    });
}

diopiError_t diopiMultiHeadAttentionBackward(Context ctx, ConstTensor grad_out, ConstTensor q, ConstTensor k,
                                             ConstTensor v, ConstTensor out, ConstTensor softmax_lse, double dropout_p,
                                             bool is_causal, Generator gen, double scale, Tensor grad_q, Tensor grad_k,
                                             Tensor grad_v) {
    return guarded([&] {
        Attention attention = attention_of({out, q, k, v, softmax_lse}, {scale, is_causal});
        attention.dropout = drawn_again(gen, dropout_p);
        run_backward(ctx, attention, {grad_q, grad_k, grad_v, grad_out});
    });
}

diopiError_t diopiMultiHeadAttentionVarLen(Context ctx, Tensor q, Tensor k, Tensor v, ConstTensor cum_seq_q,
                                           ConstTensor cum_seq_k, int64_t max_q, int64_t max_k, double dropout_p,
                                           bool is_causal, bool return_debug_mask, double scale, Tensor out,
                                           Tensor softmax_lse, Generator gen, Tensor debug_attn_mask) {
    return guarded([&] {
        Attention attention = attention_of(ctx, {out, q, k, v, softmax_lse}, {cum_seq_q, cum_seq_k, max_q, max_k},
                                           {scale, is_causal});
        attention.dropout = drawn(gen, dropout_p);
        run_ragged(ctx, attention);
        if (return_debug_mask) show_kept(ctx, attention, debug_attn_mask);
    });
}

diopiError_t diopiMultiHeadAttentionVarLenBackward(Context ctx, ConstTensor grad_out, ConstTensor q, ConstTensor k,
                                                   ConstTensor v, ConstTensor out, ConstTensor softmax_lse,
                                                   ConstTensor cum_seq_q, ConstTensor cum_seq_k, int64_t max_q,
                                                   int64_t max_k, double dropout_p, bool is_causal, Generator gen,
                                                   double scale, Tensor grad_q, Tensor grad_k, Tensor grad_v) {
    return guarded([&] {
        Attention attention = attention_of(ctx, {out, q, k, v, softmax_lse}, {cum_seq_q, cum_seq_k, max_q, max_k},
                                           {scale, is_causal});
        attention.dropout = drawn_again(gen, dropout_p);
        run_ragged_backward(ctx, attention, {grad_q, grad_k, grad_v, grad_out});
    });
}

}  // namespace impl::portable

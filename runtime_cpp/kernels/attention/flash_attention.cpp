// FlashAttention and MultiHeadAttention, of sequences of one length and of different lengths, with their gradients.
#include <diopi/diopirt.h>

#include "attention.h"
#include "copy/copy.h"
#include "space/index.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

struct Tensors {
    ConstTensor out, q, k, v, log_sum;
};

struct Options {
    double dropout;
    double scale;
    bool causal;
    int64_t left = -1;
    int64_t right = -1;
    ConstTensor slopes = nullptr;
    bool tells_kept = false;  // the form has a way to ask which weights were dropped
};

Options telling(double dropout, double scale, bool causal) { return {dropout, scale, causal, -1, -1, nullptr, true}; }

// Where each of the sequences ends that lie behind each other, unless all are of one length.
struct Ends {
    bool ragged = false;
    ConstTensor q = nullptr;
    ConstTensor k = nullptr;
    int64_t longest_q = 0;
    int64_t longest_k = 0;

    // As (sequence, token, head, channel); an undefined view of no tensor.
    TensorView order(ConstTensor handle) const {
        return handle == nullptr || !ragged ? view(handle) : as_rows_of_all(view(handle));
    }
    TensorView order(ConstTensor handle, const char* name) const {
        static_cast<void>(required_view(handle, name));
        return order(handle);
    }
};

Sequences sequences_between(Context ctx, ConstTensor ends, const char* name, int64_t longest, int64_t rows) {
    const TensorView list = required_view(ends, name);
    require_list(list, name);
    return sequences_of(ctx, list.numel - 1, longest, rows, SpansByEnds{list});
}

Attention attention_of(Context ctx, const Tensors& tensors, const Ends& ends, const Options& options) {
    Attention a = even_attention(ends.order(tensors.out, "out"), ends.order(tensors.q, "q"), ends.order(tensors.k, "k"),
                                 ends.order(tensors.v, "v"));
    if (ends.ragged) {
        a.queries = sequences_between(ctx, ends.q, "cum_seq_q", ends.longest_q, a.q.sizes[1]);
        a.keys = sequences_between(ctx, ends.k, "the ends of the keys", ends.longest_k, a.k.sizes[1]);
    }
    a.scale = options.scale;
    a.set_window(options.causal, options.left, options.right);
    a.set_slopes(view(options.slopes));
    const TensorView log_sum = required_view(tensors.log_sum, "softmax_lse");
    require(log_sum.ndim == 3, "'softmax_lse' is (sequence, head, query)");
    a.statistics.log_sum = with_dim(transposed(log_sum, 1, 2), 3, 1, 0);
    a.dropout.probability = options.dropout;
    a.dropout.is_private = !options.tells_kept;
    return a;
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

// With `shows`, `mask` receives what dropout kept.
diopiError_t forward(Context ctx, const Tensors& tensors, const Ends& ends, const Options& options, Generator generator,
                     bool shows = false, Tensor mask = nullptr) {
    return guarded([&] {
        Attention a = attention_of(ctx, tensors, ends, options);
        if (options.dropout != 0) a.dropout.stream = next_stream(ctx, generator);
        if (ends.ragged) fill_zero(ctx, a.out);
        attend(ctx, a);
        if (shows) show_kept(ctx, a, mask);
    });
}

struct Gradients {
    Tensor q, k, v;
    ConstTensor out;
};

diopiError_t backward(Context ctx, const Tensors& tensors, const Ends& ends, const Options& options,
                      Generator generator, const Gradients& grads) {
    return guarded([&] {
        Attention a = attention_of(ctx, tensors, ends, options);
        if (options.dropout != 0) a.dropout.stream = last_stream(ctx, generator);
        attend_backward(ctx, {a, ends.order(grads.out, "grad_output"), ends.order(grads.q), ends.order(grads.k),
                              ends.order(grads.v)});
    });
}

}  // namespace

diopiError_t diopiFlashAttention(Context ctx, Tensor attention_out, Tensor softmax_lse, Generator gen, ConstTensor q,
                                 ConstTensor k, ConstTensor v, ConstTensor alibi_slopes, float p_dropout,
                                 float softmax_scale, bool is_causal, int32_t window_size_left,
                                 int32_t window_size_right) {
    return forward(ctx, {attention_out, q, k, v, softmax_lse}, {},
                   {p_dropout, softmax_scale, is_causal, window_size_left, window_size_right, alibi_slopes}, gen);
}

diopiError_t diopiFlashAttentionBackward(Context ctx, Tensor grad_q, Tensor grad_k, Tensor grad_v,
                                         ConstTensor grad_output, Generator gen, ConstTensor q, ConstTensor k,
                                         ConstTensor v, ConstTensor alibi_slopes, ConstTensor attention_out,
                                         ConstTensor softmax_lse, float p_dropout, float softmax_scale, bool is_causal,
                                         int32_t window_size_left, int32_t window_size_right) {
    return backward(ctx, {attention_out, q, k, v, softmax_lse}, {},
                    {p_dropout, softmax_scale, is_causal, window_size_left, window_size_right, alibi_slopes}, gen,
                    {grad_q, grad_k, grad_v, grad_output});
}

diopiError_t diopiFlashAttentionVarLen(Context ctx, Tensor attention_out, Tensor softmax_lse, Generator gen,
                                       ConstTensor q, ConstTensor k, ConstTensor v, ConstTensor cum_seq_q,
                                       ConstTensor cum_seq_kv, ConstTensor alibi_slopes, int32_t max_seqlen_q,
                                       int32_t max_seqlen_kv, float p_dropout, float softmax_scale, bool is_causal,
                                       int32_t window_size_left, int32_t window_size_right) {
    return forward(ctx, {attention_out, q, k, v, softmax_lse},
                   {true, cum_seq_q, cum_seq_kv, max_seqlen_q, max_seqlen_kv},
                   {p_dropout, softmax_scale, is_causal, window_size_left, window_size_right, alibi_slopes}, gen);
}

diopiError_t diopiFlashAttentionVarLenBackward(Context ctx, Tensor grad_q, Tensor grad_k, Tensor grad_v,
                                               ConstTensor grad_output, Generator gen, ConstTensor q, ConstTensor k,
                                               ConstTensor v, ConstTensor cum_seq_q, ConstTensor cum_seq_kv,
                                               ConstTensor alibi_slopes, ConstTensor attention_out,
                                               ConstTensor softmax_lse, int32_t max_seqlen_q, int32_t max_seqlen_kv,
                                               float p_dropout, float softmax_scale, bool is_causal,
                                               int32_t window_size_left, int32_t window_size_right) {
    return backward(ctx, {attention_out, q, k, v, softmax_lse},
                    {true, cum_seq_q, cum_seq_kv, max_seqlen_q, max_seqlen_kv},
                    {p_dropout, softmax_scale, is_causal, window_size_left, window_size_right, alibi_slopes}, gen,
                    {grad_q, grad_k, grad_v, grad_output});
}

diopiError_t diopiMultiHeadAttention(Context ctx, Tensor q, Tensor k, Tensor v, double dropout_p, bool is_causal,
                                     bool return_debug_mask, double scale, Tensor out, Tensor softmax_lse,
                                     Generator gen, Tensor debug_attn_mask) {
    return forward(ctx, {out, q, k, v, softmax_lse}, {}, telling(dropout_p, scale, is_causal), gen, return_debug_mask,
                   debug_attn_mask);
}

diopiError_t diopiMultiHeadAttentionBackward(Context ctx, ConstTensor grad_out, ConstTensor q, ConstTensor k,
                                             ConstTensor v, ConstTensor out, ConstTensor softmax_lse, double dropout_p,
                                             bool is_causal, Generator gen, double scale, Tensor grad_q, Tensor grad_k,
                                             Tensor grad_v) {
    return backward(ctx, {out, q, k, v, softmax_lse}, {}, telling(dropout_p, scale, is_causal), gen,
                    {grad_q, grad_k, grad_v, grad_out});
}

diopiError_t diopiMultiHeadAttentionVarLen(Context ctx, Tensor q, Tensor k, Tensor v, ConstTensor cum_seq_q,
                                           ConstTensor cum_seq_k, int64_t max_q, int64_t max_k, double dropout_p,
                                           bool is_causal, bool return_debug_mask, double scale, Tensor out,
                                           Tensor softmax_lse, Generator gen, Tensor debug_attn_mask) {
    return forward(ctx, {out, q, k, v, softmax_lse}, {true, cum_seq_q, cum_seq_k, max_q, max_k},
                   telling(dropout_p, scale, is_causal), gen, return_debug_mask, debug_attn_mask);
}

diopiError_t diopiMultiHeadAttentionVarLenBackward(Context ctx, ConstTensor grad_out, ConstTensor q, ConstTensor k,
                                                   ConstTensor v, ConstTensor out, ConstTensor softmax_lse,
                                                   ConstTensor cum_seq_q, ConstTensor cum_seq_k, int64_t max_q,
                                                   int64_t max_k, double dropout_p, bool is_causal, Generator gen,
                                                   double scale, Tensor grad_q, Tensor grad_k, Tensor grad_v) {
    return backward(ctx, {out, q, k, v, softmax_lse}, {true, cum_seq_q, cum_seq_k, max_q, max_k},
                    telling(dropout_p, scale, is_causal), gen, {grad_q, grad_k, grad_v, grad_out});
}

}  // namespace impl::portable

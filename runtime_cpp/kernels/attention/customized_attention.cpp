// CustomizedFlashAttention: attention for tensors of several orders that keeps what its gradient needs in tensors of
// its own, of sequences of one length and of different lengths.
#include <diopi/diopirt.h>

#include <cstring>
#include <initializer_list>

#include "attention.h"
#include "copy/copy.h"
#include "core/host_list.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

constexpr int64_t kCopies = 8;  // of the greatest score and of the sum

// What tells one form of the operator from another; the ends of the sequences, or null where all are of one length.
struct Options {
    double dropout;
    double scale;
    bool causal;
    int64_t left;
    int64_t right;
    int64_t heads;
    const char* layout;  // null: (token, head, channel)
    ConstTensor slopes;
    ConstTensor mask;
    const Sizes* ends_q = nullptr;
    const Sizes* ends_k = nullptr;
    int64_t longest_q = 0;
    int64_t longest_k = 0;
};

struct Inputs {
    ConstTensor out;
    ConstTensor q;
    ConstTensor k;
    ConstTensor v;
};

// Brings the orders that `input_layout` names to (sequence, token, head, channel).
class Layout {
public:
    Layout(const Options& options, const TensorView& q) : name_(options.layout) {
        if (name_ == nullptr) return;
        require(is("BSH") || is("SBH") || is("BSND") || is("BNSD"),
                "'%s' is no layout of attention: expected BSH, SBH, BSND or BNSD", name_);
        if (strlen(name_) == 4) return;
        require(q.ndim == 3 && options.heads > 0 && q.sizes[2] % options.heads == 0,
                "'q' does not divide into %lld heads", options.heads);
        channels_ = q.sizes[2] / options.heads;
    }

    TensorView operator()(const TensorView& tensor) const {
        if (name_ == nullptr) return as_rows_of_all(tensor);
        require(tensor.ndim == static_cast<int>(strlen(name_)), "a tensor has another order than %s", name_);
        if (is("SBH")) return split_heads(transposed(tensor, 0, 1), channels_);
        if (is("BSH")) return split_heads(tensor, channels_);
        return is("BNSD") ? transposed(tensor, 1, 2) : tensor;
    }

private:
    bool is(const char* name) const { return strcmp(name_, name) == 0; }

    const char* name_;
    int64_t channels_ = 0;
};

Sequences sequences_between(Context ctx, const Sizes& ends, int64_t longest, int64_t rows) {
    return sequences_of(ctx, ends.len - 1, longest, rows, SpansByEnds{on_device(ctx, ends)});
}

Attention attention_of(Context ctx, const Inputs& inputs, const Layout& layout, const Options& options) {
    Attention a =
        even_attention(layout(required_view(inputs.out, "attention_out")), layout(required_view(inputs.q, "q")),
                       layout(required_view(inputs.k, "k")), layout(required_view(inputs.v, "v")));
    if (options.ends_q != nullptr) {
        a.queries = sequences_between(ctx, *options.ends_q, options.longest_q, a.q.sizes[1]);
        a.keys = sequences_between(ctx, *options.ends_k, options.longest_k, a.k.sizes[1]);
    }
    a.scale = options.scale;
    a.set_window(options.causal, options.left, options.right);
    a.set_slopes(view(options.slopes));
    a.set_mask(view(options.mask));
    a.dropout.probability = options.dropout;
    return a;
}

// (sequence, head, query, copy), or (query, head, copy) for sequences behind each other, with the token second and the
// head third.
TensorView new_statistic(Context ctx, Tensor* handle, const Attention& a, bool ragged) {
    const TensorView& q = a.q;
    if (ragged) {
        const int64_t sizes[] = {q.sizes[1], q.sizes[2], kCopies};
        return as_rows_of_all(allocated(ctx, handle, sizes, 3, diopi_dtype_float32));
    }
    const int64_t sizes[] = {q.sizes[0], q.sizes[2], q.sizes[1], kCopies};
    return transposed(allocated(ctx, handle, sizes, 4, diopi_dtype_float32), 1, 2);
}

// The form of `dropout_mask` here: the place in the generator's stream, from which the gradient draws again.
void draw(Context ctx, Dropout& dropout, Generator generator, Tensor* mask) {
    *mask = nullptr;
    if (dropout.probability == 0) return;
    dropout.stream = next_stream(ctx, generator);
    const int64_t size = sizeof(RandomStream);
    for_each(ctx, 1, StoreStreamTask{allocated(ctx, mask, &size, 1, diopi_dtype_uint8).as<uint64_t>(), dropout.stream});
}

struct Kept {
    Tensor* dropout_mask;
    Tensor* softmax_max;
    Tensor* softmax_sum;
    Tensor* softmax_out;
};

diopiError_t forward(Context ctx, const Inputs& inputs, const Kept& kept, Generator generator, const Options& options) {
    return guarded([&] {
        const bool ragged = options.ends_q != nullptr;
        const Layout layout(options, required_view(inputs.q, "q"));
        Attention a = attention_of(ctx, inputs, layout, options);
        a.statistics = {new_statistic(ctx, kept.softmax_max, a, ragged),
                        new_statistic(ctx, kept.softmax_sum, a, ragged), ragged};
        const int64_t none = 0;
        allocated(ctx, kept.softmax_out, &none, 1, diopi_dtype_float32);
        draw(ctx, a.dropout, generator, kept.dropout_mask);
        if (ragged) {
            for (const TensorView* output : {&a.out, &a.statistics.log_sum, &a.statistics.sum}) fill_zero(ctx, *output);
        }
        attend(ctx, a);
    });
}

struct Gradients {
    Tensor q;
    Tensor k;
    Tensor v;
    ConstTensor out;
};

diopiError_t backward(Context ctx, const Inputs& inputs, const Gradients& grads, ConstTensor dropout_mask,
                      const Options& options) {
    return guarded([&] {
        const Layout layout(options, required_view(inputs.q, "q"));
        const auto order = [&](ConstTensor handle) {
            return handle == nullptr ? undefined_view() : layout(view(handle));
        };
        Attention a = attention_of(ctx, inputs, layout, options);
        if (options.dropout != 0) {
            const TensorView place = required_view(dropout_mask, "dropout_mask");
            require(place.numel == sizeof(RandomStream) && place.contiguous() &&
                        reinterpret_cast<uintptr_t>(place.data) % alignof(uint64_t) == 0,
                    "'dropout_mask' is from another library");
            a.dropout.stream.seed = place.as<uint64_t>();
            a.dropout.stream.offset = a.dropout.stream.seed + 1;
        }
        required_view(grads.out, "grad_output");
        attend_backward(ctx, {a, order(grads.out), order(grads.q), order(grads.k), order(grads.v)});
    });
}

}  // namespace

diopiError_t diopiCustomizedFlashAttention(Context ctx, Tensor attention_out, Tensor* dropout_mask, Tensor* softmax_max,
                                           Tensor* softmax_sum, Tensor* softmax_out, Generator gen, ConstTensor q,
                                           ConstTensor k, ConstTensor v, ConstTensor alibi_slopes,
                                           ConstTensor attention_mask, float p_dropout, float softmax_scale,
                                           bool is_causal, int32_t window_size_left, int32_t window_size_right,
                                           int32_t head_num, const char* input_layout) {
    return forward(ctx, {attention_out, q, k, v}, {dropout_mask, softmax_max, softmax_sum, softmax_out}, gen,
                   {p_dropout, softmax_scale, is_causal, window_size_left, window_size_right, head_num,
                    input_layout == nullptr ? "" : input_layout, alibi_slopes, attention_mask});
}

diopiError_t diopiCustomizedFlashAttentionBackward(Context ctx, Tensor grad_q, Tensor grad_k, Tensor grad_v,
                                                   ConstTensor grad_output, ConstTensor q, ConstTensor k, ConstTensor v,
                                                   ConstTensor alibi_slopes, ConstTensor attention_out,
                                                   ConstTensor attention_mask, ConstTensor dropout_mask, ConstTensor,
                                                   ConstTensor, ConstTensor, float p_dropout, float softmax_scale,
                                                   bool is_causal, int32_t window_size_left, int32_t window_size_right,
                                                   int32_t head_num, const char* input_layout) {
    return backward(ctx, {attention_out, q, k, v}, {grad_q, grad_k, grad_v, grad_output}, dropout_mask,
                    {p_dropout, softmax_scale, is_causal, window_size_left, window_size_right, head_num,
                     input_layout == nullptr ? "" : input_layout, alibi_slopes, attention_mask});
}

diopiError_t diopiCustomizedFlashAttentionVarLen(Context ctx, Tensor attention_out, Tensor* dropout_mask,
                                                 Tensor* softmax_max, Tensor* softmax_sum, Tensor* softmax_out,
                                                 Generator gen, ConstTensor q, ConstTensor k, ConstTensor v,
                                                 Sizes cum_seq_q, Sizes cum_seq_kv, ConstTensor alibi_slopes,
                                                 ConstTensor attention_mask, int32_t max_seqlen_q,
                                                 int32_t max_seqlen_kv, float p_dropout, float softmax_scale,
                                                 bool is_causal, int32_t window_size_left, int32_t window_size_right) {
    return forward(ctx, {attention_out, q, k, v}, {dropout_mask, softmax_max, softmax_sum, softmax_out}, gen,
                   {p_dropout, softmax_scale, is_causal, window_size_left, window_size_right, 0, nullptr, alibi_slopes,
                    attention_mask, &cum_seq_q, &cum_seq_kv, max_seqlen_q, max_seqlen_kv});
}

diopiError_t diopiCustomizedFlashAttentionVarLenBackward(
    Context ctx, Tensor grad_q, Tensor grad_k, Tensor grad_v, ConstTensor grad_output, ConstTensor q, ConstTensor k,
    ConstTensor v, Sizes cum_seq_q, Sizes cum_seq_kv, ConstTensor alibi_slopes, ConstTensor attention_out,
    ConstTensor attention_mask, ConstTensor dropout_mask, ConstTensor, ConstTensor, ConstTensor, int32_t max_seqlen_q,
    int32_t max_seqlen_kv, float p_dropout, float softmax_scale, bool is_causal, int32_t window_size_left,
    int32_t window_size_right) {
    return backward(ctx, {attention_out, q, k, v}, {grad_q, grad_k, grad_v, grad_output}, dropout_mask,
                    {p_dropout, softmax_scale, is_causal, window_size_left, window_size_right, 0, nullptr, alibi_slopes,
                     attention_mask, &cum_seq_q, &cum_seq_kv, max_seqlen_q, max_seqlen_kv});
}

}  // namespace impl::portable

// Whole layers of a language model in one call: attention of prompts and of new tokens with a cache, and the gated
// feed-forward layer.
#include <diopi/diopirt.h>

#include <initializer_list>

#include "attention/attention.h"
#include "copy/copy.h"
#include "linear_algebra/matrix.h"
#include "math/math.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

// Memory comes from the context here, so a caller's workspace is never needed. True where a call only asks how much is.
bool asks_for_size(std::initializer_list<int64_t*> sizes) {
    bool asks = false;
    for (int64_t* size : sizes) {
        require(size != nullptr, "the size of a workspace is null");
        if (*size >= 0) continue;
        *size = 0;
        asks = true;
    }
    return asks;
}

// Where a token stands: its sequence, its place for the rotary embedding, and its row of the caches.
struct Standing {
    int64_t sequence;
    int64_t place;
    int64_t row;  // negative: the token is left out
};

// Of prompts of one length, whose last tokens are the last of all that the cache holds.
struct PromptStandings {
    int64_t length;
    int64_t held;
    DIOPI_HD Standing operator()(int64_t token) const {
        const int64_t place = held - length + token % length;
        return {token / length, place, place};
    }
};

// Of one new token per sequence.
struct NewStandings {
    TensorView finished;
    TensorView paddings;
    TensorView lengths;
    int64_t step;
    int64_t max_seq_len;

    DIOPI_HD bool runs(int64_t sequence) const {
        return !finished.defined() || number_at<int64_t>(finished, sequence) == 0;
    }
    DIOPI_HD Standing operator()(int64_t sequence) const {
        const int64_t past = number_at<int64_t>(lengths, sequence);
        return {sequence, step - 1 - number_at<int64_t>(paddings, sequence), runs(sequence) ? past % max_seq_len : -1};
    }
};

// The tokens that the cache holds of each sequence, its new one included.
struct HeldSpans {
    NewStandings tokens;
    DIOPI_HD Range operator()(int64_t sequence) const {
        if (!tokens.runs(sequence)) return {0, 0};
        return {0, math::min(number_at<int64_t>(tokens.lengths, sequence) + 1, tokens.max_seq_len)};
    }
};

struct NewSpans {
    NewStandings tokens;
    DIOPI_HD Range operator()(int64_t sequence) const { return {0, tokens.runs(sequence) ? 1 : 0}; }
};

struct Rotary {
    int64_t channels;  // of a head, from the first on; the others are not turned
    double theta;

    // Channel `channel` of a head that is turned by the angle of its pair.
    template <class C>
    DIOPI_HD double turned(const TensorView& heads, int64_t token, int64_t head, int64_t channel, int64_t place) const {
        const double x = static_cast<double>(element<C>(heads, token, head, channel));
        if (channel >= channels) return x;
        const int64_t even = channel - channel % 2;
        const double angle =
            static_cast<double>(place) * math::pow(theta, -static_cast<double>(even) / static_cast<double>(channels));
        const double other = static_cast<double>(element<C>(heads, token, head, channel == even ? even + 1 : even));
        return x * math::cos(angle) + (channel == even ? -other : other) * math::sin(angle);
    }
};

// Splits the product into turned queries, and turned keys and values that go into the caches.
template <class T, class Standings>
struct SplitTask {
    TensorView projected;  // (token, head of q, k or v, channel), in the type of products
    TensorView q;          // (token, head, channel)
    TensorView keys;       // (sequence, row, head, channel)
    TensorView values;
    Standings standings;
    Rotary rotary;

    DIOPI_HD void operator()(int64_t i) const {
        using C = AccumulateType<T>;
        const int64_t channel = i % q.sizes[2], head = i / q.sizes[2] % projected.sizes[1];
        const int64_t token = i / q.sizes[2] / projected.sizes[1];
        const Standing at = standings(token);
        if (at.row < 0) return;
        const int64_t key_head = head - q.sizes[1], value_head = key_head - keys.sizes[2];
        if (value_head >= 0) {
            element<T>(values, at.sequence, at.row, value_head, channel) =
                cast<T>(element<C>(projected, token, head, channel));
            return;
        }
        const T turned = cast<T>(rotary.turned<C>(projected, token, head, channel, at.place));
        if (key_head < 0) {
            element<T>(q, token, head, channel) = turned;
        } else {
            element<T>(keys, at.sequence, at.row, key_head, channel) = turned;
        }
    }
};

struct Layer {
    TensorView inoutput;  // (token, channel)
    TensorView projected;
    TensorView q;     // (token, head, channel)
    TensorView keys;  // (sequence, row, head, channel)
    TensorView values;
    Rotary rotary;
};

struct Sizes {
    int64_t layer;
    int64_t heads;
    int64_t kv_heads;
    int64_t channels;
    Rotary rotary;
};

TensorView cache_of_layer(Tensor handle, const char* name, const Sizes& sizes, diopiDtype_t dtype) {
    const TensorView cache = required_view(handle, name);
    if (cache.dtype != dtype) fail_dtype(cache.dtype);
    require(cache.ndim == 5 && sizes.layer >= 0 && sizes.layer < cache.sizes[0] && cache.sizes[2] == sizes.kv_heads &&
                cache.sizes[4] == sizes.channels,
            "'%s' is (layer, sequence, head, token, channel) of %lld heads of %lld channels", name, sizes.kv_heads,
            sizes.channels);
    return transposed(selected(cache, 0, sizes.layer), 1, 2);
}

// The product of the tokens with the weights of queries, keys and values.
Layer project(Context ctx, Tensor inoutput, ConstTensor weight, ConstTensor bias, Tensor key_cache, Tensor value_cache,
              const Sizes& sizes) {
    const TensorView x = required_view(inoutput, "inoutput");
    require(x.ndim == 2 && sizes.heads > 0 && sizes.channels > 0 && x.sizes[1] == sizes.heads * sizes.channels,
            "'inoutput' does not hold %lld heads of %lld channels", sizes.heads, sizes.channels);
    require(sizes.rotary.channels >= 0 && sizes.rotary.channels <= sizes.channels && sizes.rotary.channels % 2 == 0,
            "a rotary embedding turns an even number of the channels of a head");
    const int64_t columns[] = {x.sizes[0], (sizes.heads + 2 * sizes.kv_heads) * sizes.channels};
    const int64_t rows[] = {x.sizes[0], sizes.heads, sizes.channels};
    const TensorView product = temporary(ctx, columns, 2, product_dtype(x.dtype));
    if (bias != nullptr) copy_elements(ctx, product, view(bias));
    multiply(ctx, product, x, required_view(weight, "qkv_weight"), 1, bias == nullptr ? 0 : 1);
    return {x,
            split_heads(product, sizes.channels),
            temporary(ctx, rows, 3, x.dtype),
            cache_of_layer(key_cache, "key_cache", sizes, x.dtype),
            cache_of_layer(value_cache, "value_cache", sizes, x.dtype),
            sizes.rotary};
}

// `length` tokens of each of `count` sequences.
template <class Standings>
Attention attention_of(Context ctx, const Layer& layer, const Standings& standings, int64_t count, int64_t length) {
    require(count <= layer.keys.sizes[0] && layer.values.same_sizes(layer.keys),
            "the caches do not hold %lld sequences", count);
    dispatch<Float>(layer.q.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        for_each(ctx, layer.projected.numel,
                 SplitTask<T, Standings>{layer.projected, layer.q, layer.keys, layer.values, standings, layer.rotary});
    });
    const auto sequences = [&](const TensorView& heads) {
        TensorView result = with_dim(heads, 0, count, heads.strides[0] * length);
        result.sizes[1] = length;
        return recounted(result);
    };
    Attention a = even_attention(sequences(split_heads(layer.inoutput, layer.q.sizes[2])), sequences(layer.q),
                                 narrowed(layer.keys, 0, 0, count), narrowed(layer.values, 0, 0, count));
    a.scale = 1.0 / math::sqrt(static_cast<double>(layer.q.sizes[2]));
    return a;
}

template <class T>
struct GateTask {
    TensorView gate;  // becomes its SiLU times `linear`
    TensorView linear;
    DIOPI_HD void operator()(int64_t i) const {
        T& x = gate.as<T>()[i];
        x = x * math::sigmoid(x) * linear.as<T>()[i];
    }
};

}  // namespace

diopiError_t diopiFusedContextAttentionInp(Context ctx, Tensor inoutput, ConstTensor qkv_weight, ConstTensor qkv_bias,
                                           Tensor, int64_t* pre_work_size, bool, Tensor, int64_t* workspace_size,
                                           int64_t, Tensor key_cache, Tensor value_cache, int64_t layer_id,
                                           int64_t local_head_num, int64_t local_kv_head_num, int64_t size_per_head,
                                           int64_t max_seq_len, int64_t max_q_len, int64_t max_kv_len,
                                           int64_t rotary_embedding, float rope_theta) {
    return guarded([&] {
        if (asks_for_size({pre_work_size, workspace_size})) return;
        const Layer layer =
            project(ctx, inoutput, qkv_weight, qkv_bias, key_cache, value_cache,
                    {layer_id, local_head_num, local_kv_head_num, size_per_head, {rotary_embedding, rope_theta}});
        const int64_t tokens = layer.inoutput.sizes[0];
        require(max_q_len > 0 && tokens % max_q_len == 0, "%lld tokens are no sequences of %lld", tokens, max_q_len);
        require(max_q_len <= max_kv_len && max_kv_len <= max_seq_len && max_seq_len <= layer.keys.sizes[1],
                "the caches do not hold %lld tokens of a sequence", max_kv_len);
        Attention a = attention_of(ctx, layer, PromptStandings{max_q_len, max_kv_len}, tokens / max_q_len, max_q_len);
        a.keys.longest = max_kv_len;
        a.set_window(true, -1, -1);
        attend(ctx, a);
    });
}

diopiError_t diopiFusedDecoderAttentionInp(Context ctx, Tensor inoutput, ConstTensor qkv_weight, ConstTensor qkv_bias,
                                           Tensor, int64_t* workspace_size, int64_t, Tensor key_cache,
                                           Tensor value_cache, ConstTensor finished, ConstTensor total_padding_tokens,
                                           ConstTensor sequence_lengths, int64_t step, int64_t layer_id,
                                           int64_t local_head_num, int64_t local_kv_head_num, int64_t size_per_head,
                                           int64_t max_seq_len, int64_t rotary_embedding, float rope_theta) {
    return guarded([&] {
        if (asks_for_size({workspace_size})) return;
        const Layer layer =
            project(ctx, inoutput, qkv_weight, qkv_bias, key_cache, value_cache,
                    {layer_id, local_head_num, local_kv_head_num, size_per_head, {rotary_embedding, rope_theta}});
        const int64_t count = layer.inoutput.sizes[0];
        const NewStandings tokens{view(finished), sized_view(total_padding_tokens, "total_padding_tokens", {count}),
                                  sized_view(sequence_lengths, "sequence_lengths", {count}), step, max_seq_len};
        if (tokens.finished) require_sizes(tokens.finished, "finished", {count});
        require(max_seq_len > 0 && max_seq_len <= layer.keys.sizes[1],
                "the caches do not hold %lld tokens of a sequence", max_seq_len);
        Attention a = attention_of(ctx, layer, tokens, count, 1);
        a.queries = sequences_of(ctx, count, 1, 1, NewSpans{tokens});
        a.keys = sequences_of(ctx, count, max_seq_len, max_seq_len, HeldSpans{tokens});
        attend(ctx, a);
    });
}

diopiError_t diopiFusedSiluFfnInp(Context ctx, Tensor inoutput, ConstTensor weight1, ConstTensor weight2,
                                  ConstTensor weight3, Tensor, int64_t* workspace_size, int64_t) {
    return guarded([&] {
        if (asks_for_size({workspace_size})) return;
        const TensorView x = required_view(inoutput, "inoutput"), weight = required_view(weight1, "weight1");
        require(x.ndim == 2 && weight.ndim == 2, "'inoutput' and 'weight1' are matrices");
        const int64_t sizes[] = {x.sizes[0], weight.sizes[1]};
        const TensorView gate = temporary(ctx, sizes, 2, product_dtype(x.dtype));
        const TensorView linear = temporary_like(ctx, gate, gate.dtype);
        multiply(ctx, gate, x, weight, 1, 0);
        multiply(ctx, linear, x, required_view(weight3, "weight3"), 1, 0);
        for_each_typed<Types<float, double>, GateTask>(ctx, gate.dtype, gate.numel, gate, linear);
        multiply(ctx, x, gate, required_view(weight2, "weight2"), 1, 0);
    });
}

}  // namespace impl::portable

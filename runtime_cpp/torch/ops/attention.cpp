// Attention at once, where the contract's functions serve it: no mask, heads of one length.
//
// Torch asks before it decomposes attention: fused_sdp_choice answers for dipu. What the functions do not serve takes torch's way of
// several products.
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_scaled_dot_product_fused_attention_overrideable_backward_ops.h>
#include <ATen/ops/_scaled_dot_product_fused_attention_overrideable_ops.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/zeros.h>
#include <c10/core/SymInt.h>

#include <diopi/functions_ext.h>

#include <array>
#include <atomic>
#include <cmath>
#include <tuple>

#include "device/generator.h"
#include "differentiation.h"
#include "wrapper/wrapper.h"

namespace dipu {
namespace {

namespace vendor {
constinit VendorFunction<decltype(::diopiFlashAttention)> diopiFlashAttention{{"diopiFlashAttention"}};
constinit VendorFunction<decltype(::diopiFlashAttentionBackward)> diopiFlashAttentionBackward{
    {"diopiFlashAttentionBackward"}};
constinit VendorFunction<decltype(::diopiMultiHeadAttention)> diopiMultiHeadAttention{{"diopiMultiHeadAttention"}};
constinit VendorFunction<decltype(::diopiMultiHeadAttentionBackward)> diopiMultiHeadAttentionBackward{
    {"diopiMultiHeadAttentionBackward"}};
}  // namespace vendor

using OptionalTensor = std::optional<at::Tensor>;
using Four = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
// The result, the logarithms of sums, and what other devices keep of sequences and random numbers.
using Attended = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor,
                            at::Tensor, at::Tensor>;

bool is_half(c10::ScalarType dtype) { return dtype == at::kHalf || dtype == at::kBFloat16; }

// FlashAttention is for halves, MultiHeadAttention for the others; a vendor may have one of them.
bool has_functions(c10::ScalarType dtype) {
    if (is_half(dtype)) {
        return vendor::diopiFlashAttention.address != nullptr && vendor::diopiFlashAttentionBackward.address != nullptr;
    }
    return (dtype == at::kFloat || dtype == at::kDouble) && vendor::diopiMultiHeadAttention.address != nullptr &&
           vendor::diopiMultiHeadAttentionBackward.address != nullptr;
}

// (batch, head, token, channel) of one kind; sizes may be symbols while torch.compile traces.
bool have_matching_heads(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
    if (query.dim() != 4 || key.dim() != 4 || value.dim() != 4) {
        return false;
    }
    const bool alike = query.scalar_type() == key.scalar_type() && query.scalar_type() == value.scalar_type();
    return alike && query.sym_numel() != 0 && key.sym_numel() != 0 && key.sym_sizes() == value.sym_sizes() &&
           query.sym_size(0) == key.sym_size(0) && query.sym_size(3) == key.sym_size(3);
}

// What has no rule of its own for the fused operator: vmap, and tangents of forward-mode differentiation.
bool is_transformed(const at::Tensor& tensor) {
    constexpr c10::DispatchKeySet wrapped({c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper});
    return tensor.key_set().has_any(wrapped) || has_tangent(tensor);
}

bool is_served(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, bool is_causal,
               bool enable_gqa) {
    if (query.is_nested() || key.is_nested() || value.is_nested() || !has_functions(query.scalar_type()) ||
        !have_matching_heads(query, key, value)) {
        return false;
    }
    if (is_transformed(query) || is_transformed(key) || is_transformed(value)) {
        return false;
    }
    const c10::SymInt heads = query.sym_size(1), served_by = key.sym_size(1);
    const bool heads_fit = heads == served_by || (enable_gqa && heads % served_by == 0);
    // Torch counts the diagonal from the first query and key, the contract from the last ones.
    return heads_fit && (!is_causal || query.sym_size(2) == key.sym_size(2));
}

constinit OperatorControl attention_control{"_scaled_dot_product_fused_attention_overrideable"};
constinit OperatorControl attention_backward_control{"_scaled_dot_product_fused_attention_overrideable_backward"};

// Whether the vendor's function refused dropout once: from then on torch's products serve.
std::atomic<bool> refuses_dropout{false};

// The CPU drops others than the device: both steps run on one of them, and are not compared.
bool may_drop(double probability) {
    return probability == 0 ||
           (probability > 0 && probability <= 1 && !refuses_dropout.load(std::memory_order_relaxed) &&
            !intercepted(attention_control) && !intercepted(attention_backward_control));
}

int64_t fused_sdp_choice(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                         const OptionalTensor& attn_mask, double dropout_p, bool is_causal,
                         std::optional<double> /*scale*/, bool enable_gqa) {
    const at::Context& context = at::globalContext();
    // torch.nn.attention.sdpa_kernel may ask for a fused one by the name that it has elsewhere.
    const bool wanted =
        context.userEnabledOverrideableSDP() || context.userEnabledFlashSDP() || context.userEnabledMemEfficientSDP();
    const bool plain = !(attn_mask.has_value() && attn_mask->defined());
    const bool fused = wanted && plain && may_drop(dropout_p) && is_served(query, key, value, is_causal, enable_gqa);
    return static_cast<int64_t>(fused ? at::SDPBackend::overrideable : at::SDPBackend::math);
}

// (batch, token, head, channel), as the contract has it.
at::Tensor tokens_first(const at::Tensor& heads) { return heads.transpose(1, 2); }

// The number of heads of the query that one head of the key serves.
int64_t share(const at::Tensor& query, const at::Tensor& key) { return query.size(1) / key.size(1); }

// MultiHeadAttention has as many heads of keys as of queries.
at::Tensor widened(const at::Tensor& heads, int64_t share) {
    return share == 1 ? heads : heads.repeat_interleave(share, 1);
}
at::Tensor narrowed(const at::Tensor& grad, int64_t share) {
    return share == 1 ? grad : grad.unflatten(1, {grad.size(1) / share, share}).sum(2);
}

// The scale where none is given.
double scale_of(const at::Tensor& query, std::optional<double> scale) {
    return scale.value_or(1 / std::sqrt(static_cast<double>(query.size(3))));
}

bool has_vendor_form(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const OptionalTensor& attn_bias, bool is_causal) {
    const bool plain = !(attn_bias.has_value() && attn_bias->defined());
    return (plain && is_served(query, key, value, is_causal, /*enable_gqa=*/true)) ||
           refuse("masks, or heads of other shapes");
}

// What a call draws: where the generator stands behind it, as numbers on the device, is what the gradient draws from.
struct Draws {
    double probability;
    at::Tensor seed, offset;

    Draws(const at::Tensor& query, double probability) : probability(probability) {
        const auto number = query.options().dtype(at::kLong);
        // compiled graphs keep both where nothing is drawn all the same
        seed = probability == 0 ? at::zeros({}, number) : at::empty({}, number);
        offset = probability == 0 ? at::zeros({}, number) : at::empty({}, number);
    }

    void keep(const at::Generator& generator) const {
        if (probability != 0) at::check_generator<Generator>(generator)->write_state(seed, offset);
    }
};

bool attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const at::Tensor& out,
            const at::Tensor& lse, const Draws& draws, bool is_causal, double scale) {
    const c10::Device device = query.device();
    const bool flash = is_half(query.scalar_type());
    const int64_t group = flash ? 1 : share(query, key);
    const at::Tensor q = tokens_first(query), k = tokens_first(widened(key, group)),
                     v = tokens_first(widened(value, group));
    const at::Tensor result = tokens_first(out);
    const In q_arg(q, device), k_arg(k, device), v_arg(v, device);
    const GeneratorArg generator(std::nullopt, device);
    Context context(query);
    const bool done =
        flash ? ran(vendor::diopiFlashAttention(context, out_handle(result), out_handle(lse), generator, q_arg, k_arg,
                                                v_arg, nullptr, static_cast<float>(draws.probability),
                                                static_cast<float>(scale), is_causal, -1, -1),
                    "diopiFlashAttention")
              : ran(vendor::diopiMultiHeadAttention(context, out_handle(q_arg.tensor()), out_handle(k_arg.tensor()),
                                                    out_handle(v_arg.tensor()), draws.probability, is_causal, false,
                                                    scale, out_handle(result), out_handle(lse), generator, nullptr),
                    "diopiMultiHeadAttention");
    if (done) {
        draws.keep(generator.generator());
    } else if (draws.probability != 0) {
        refuses_dropout.store(true, std::memory_order_relaxed);
    }
    return done;
}

Attended attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                   const OptionalTensor& attn_bias, double dropout_p, bool is_causal, bool return_debug_mask,
                   std::optional<double> scale) {
    using Overload = at::_ops::_scaled_dot_product_fused_attention_overrideable;
    if (intercepted(attention_control)) {
        return Overload::redispatch(kInterposer, query, key, value, attn_bias, dropout_p, is_causal, return_debug_mask,
                                    scale);
    }
    if (has_vendor_form(query, key, value, attn_bias, is_causal)) {
        at::Tensor out = new_preserved(query, query.scalar_type());
        at::Tensor lse = new_contiguous({query.size(0), query.size(1), query.size(2)},
                                        promoted(query.scalar_type(), at::kFloat), query.device().index());
        const Draws draws(query, dropout_p);
        if (attend(query, key, value, out, lse, draws, is_causal, scale_of(query, scale))) {
            return {std::move(out), std::move(lse), {}, {}, query.size(2), key.size(2), draws.seed, draws.offset, {}};
        }
    }
    return Overload::redispatch(kFallback, query, key, value, attn_bias, dropout_p, is_causal, return_debug_mask,
                                scale);
}

// The gradients of query, key and value, all of them (batch, head, token, channel).
struct Gradients {
    at::Tensor query, key, value;
};

bool attend_backward(const at::Tensor& grad_out, const at::Tensor& query, const at::Tensor& key,
                     const at::Tensor& value, const at::Tensor& out, const at::Tensor& lse, double dropout_p,
                     const std::optional<at::Generator>& drew, bool is_causal, double scale, const Gradients& grads) {
    const c10::Device device = query.device();
    const at::Tensor grad = tokens_first(grad_out), q = tokens_first(query), k = tokens_first(key),
                     v = tokens_first(value);
    const at::Tensor attended = tokens_first(out);
    const at::Tensor grad_q = tokens_first(grads.query), grad_k = tokens_first(grads.key),
                     grad_v = tokens_first(grads.value);
    const In grad_arg(grad, query.scalar_type(), device), q_arg(q, device), k_arg(k, device), v_arg(v, device);
    const In attended_arg(attended, device), lse_arg(lse, device);
    const GeneratorArg generator(drew, device);
    Context context(query);
    if (is_half(query.scalar_type())) {
        return ran(vendor::diopiFlashAttentionBackward(context, out_handle(grad_q), out_handle(grad_k),
                                                       out_handle(grad_v), grad_arg, generator, q_arg, k_arg, v_arg,
                                                       nullptr, attended_arg, lse_arg, static_cast<float>(dropout_p),
                                                       static_cast<float>(scale), is_causal, -1, -1),
                   "diopiFlashAttentionBackward");
    }
    return ran(vendor::diopiMultiHeadAttentionBackward(context, grad_arg, q_arg, k_arg, v_arg, attended_arg, lse_arg,
                                                       dropout_p, is_causal, generator, scale, out_handle(grad_q),
                                                       out_handle(grad_k), out_handle(grad_v)),
               "diopiMultiHeadAttentionBackward");
}

Four attention_backward(const at::Tensor& grad_out, const at::Tensor& query, const at::Tensor& key,
                        const at::Tensor& value, const at::Tensor& attn_bias, std::array<bool, 4> grad_input_mask,
                        const at::Tensor& out, const at::Tensor& logsumexp, const at::Tensor& cum_seq_q,
                        const at::Tensor& cum_seq_k, int64_t max_q, int64_t max_k, double dropout_p, bool is_causal,
                        const at::Tensor& philox_seed, const at::Tensor& philox_offset, std::optional<double> scale) {
    using Overload = at::_ops::_scaled_dot_product_fused_attention_overrideable_backward;
    if (intercepted(attention_backward_control)) {
        return Overload::redispatch(kInterposer, grad_out, query, key, value, attn_bias, grad_input_mask, out,
                                    logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, philox_seed,
                                    philox_offset, scale);
    }
    if (has_vendor_form(query, key, value, attn_bias, is_causal)) {
        std::optional<at::Generator> drew;
        if (dropout_p != 0) drew = at::make_generator<Generator>(philox_seed, philox_offset);
        const int64_t group = is_half(query.scalar_type()) ? 1 : share(query, key);
        const at::Tensor wide_key = widened(key, group), wide_value = widened(value, group);
        const Gradients grads{new_preserved(query, query.scalar_type()), new_preserved(wide_key, key.scalar_type()),
                              new_preserved(wide_value, value.scalar_type())};
        if (attend_backward(grad_out, query, wide_key, wide_value, out, logsumexp, dropout_p, drew, is_causal,
                            scale_of(query, scale), grads)) {
            return {grads.query, narrowed(grads.key, group), narrowed(grads.value, group), at::Tensor()};
        }
    }
    return Overload::redispatch(kFallback, grad_out, query, key, value, attn_bias, grad_input_mask, out, logsumexp,
                                cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, philox_seed, philox_offset,
                                scale);
}

}  // namespace

void register_attention(Registrar& registrar) {
    registrar.resolve({&vendor::diopiFlashAttention, &vendor::diopiFlashAttentionBackward,
                       &vendor::diopiMultiHeadAttention, &vendor::diopiMultiHeadAttentionBackward});
    if (has_functions(at::kHalf) || has_functions(at::kFloat)) {
        registrar.add(attention_control, &attention, {});
        registrar.add(attention_backward_control, &attention_backward, {});
    } else {
        // Says what is missing.
        registrar.add(attention_control, &attention,
                      {&vendor::diopiFlashAttention, &vendor::diopiFlashAttentionBackward});
        registrar.add(attention_backward_control, &attention_backward,
                      {&vendor::diopiFlashAttention, &vendor::diopiFlashAttentionBackward});
    }
    at::native::_fused_sdp_choice_stub.set_privateuse1_dispatch_ptr(&fused_sdp_choice);
}

}  // namespace dipu

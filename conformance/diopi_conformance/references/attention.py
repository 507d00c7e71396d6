"""Attention in float64, written out: scores, what a query may see, softmax, and the mix of values."""

from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.references.registry import reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]
Pair = tuple[torch.Tensor, torch.Tensor]

_COPIES = 8  # of each query's maximum and sum, which the customized forms keep


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, **seen: Any) -> Pair:
    """The mix of `v` and the scores, -inf where hidden, of tensors (..., head, token, channel)."""
    share = q.shape[-3] // k.shape[-3]
    k, v = k.repeat_interleave(share, -3), v.repeat_interleave(share, -3)
    scores = q @ k.transpose(-1, -2) * scale
    place = torch.arange(q.shape[-2])[:, None] + k.shape[-2] - q.shape[-2]  # the last query stands at the last key
    distance = torch.arange(k.shape[-2]) - place
    if seen.get("slopes") is not None:
        scores = scores - seen["slopes"][:, None, None] * distance.abs()
    hidden = _hidden(distance, **{name: value for name, value in seen.items() if name != "slopes"})
    # A query that sees nothing gives zeros; a finite number in place of -inf keeps gradients from becoming NaN.
    weights = scores.masked_fill(hidden, -1e300).softmax(-1).masked_fill(hidden, 0.0)
    return _mixed(weights, v), scores.masked_fill(hidden, -torch.inf)


def _mixed(weights: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """`weights` @ `v`, by the distances of `v` from the values of the greatest weight.

    The gradient of a softmax takes the mean of its weights' gradients off each of them; where one weight is nearly 1,
    or where all keys are alike, only these distances leave digits of the difference.
    """
    if weights.shape[-1] == 0:
        return weights @ v
    centre = v.detach().take_along_dim(weights.detach().argmax(-1)[..., None], -2)
    distances = v[..., None, :, :] - centre[..., :, None, :]
    return centre * weights.detach().sum(-1, keepdim=True) + (weights[..., None, :] @ distances).squeeze(-2)


def _hidden(
    distance: torch.Tensor, causal: bool = False, left: int = -1, right: int = -1, mask: torch.Tensor | None = None
) -> torch.Tensor:
    """Which keys a query does not see; `distance` is the key's place less the query's."""
    hidden = torch.zeros_like(distance, dtype=torch.bool)
    if causal:
        hidden |= distance > 0
    if left >= 0:
        hidden |= distance < -left
    if right >= 0:
        hidden |= distance > right
    return hidden if mask is None else hidden | mask


def _seen(call: "ReferenceCall") -> dict[str, Any]:
    return {
        "slopes": call.get("alibi_slopes"),
        "mask": call.get("attention_mask"),
        "causal": call["is_causal"],
        "left": call.get("window_size_left", -1),
        "right": call.get("window_size_right", -1),
    }


def _of_sequences(
    call: "ReferenceCall", ends_q: Any, ends_k: Any, scale: float
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """`attend` for each sequence of tensors (token, head, channel): the values behind each other, and the scores."""
    outs, scores = [], []
    for b in range(len(ends_q) - 1):
        of_q, of_k = slice(int(ends_q[b]), int(ends_q[b + 1])), slice(int(ends_k[b]), int(ends_k[b + 1]))
        q, k, v = _heads_first(call["q"][of_q]), _heads_first(call["k"][of_k]), _heads_first(call["v"][of_k])
        out, of_one = attend(q, k, v, scale, **_seen(call))
        outs.append(_heads_first(out))
        scores.append(of_one)
    return torch.cat(outs), scores


def _logarithms(scores: list[torch.Tensor]) -> torch.Tensor:
    """Of sequences of one length: what `softmax_lse` holds behind a shorter one is not said."""
    return torch.stack([of_one.logsumexp(-1) for of_one in scores])


def _heads_first(tokens: torch.Tensor) -> torch.Tensor:
    return tokens.transpose(-2, -3)


@reference_for("diopiFlashAttention")
def flash_attention(call: "ReferenceCall") -> Outputs:
    q, k, v = (_heads_first(call[name]) for name in "qkv")
    out, scores = attend(q, k, v, call["softmax_scale"], **_seen(call))
    return {"attention_out": _heads_first(out), "softmax_lse": scores.logsumexp(-1)}


@reference_for("diopiFlashAttentionVarLen")
def flash_attention_var_len(call: "ReferenceCall") -> Outputs:
    out, scores = _of_sequences(call, call["cum_seq_q"], call["cum_seq_kv"], call["softmax_scale"])
    return {"attention_out": out, "softmax_lse": _logarithms(scores)}


@reference_for("diopiMultiHeadAttention")
def multi_head_attention(call: "ReferenceCall") -> Outputs:
    q, k, v = (_heads_first(call[name]) for name in "qkv")
    out, scores = attend(q, k, v, call["scale"], causal=call["is_causal"])
    return {"out": _heads_first(out), "softmax_lse": scores.logsumexp(-1), "debug_attn_mask": None}


@reference_for("diopiMultiHeadAttentionVarLen")
def multi_head_attention_var_len(call: "ReferenceCall") -> Outputs:
    out, scores = _of_sequences(call, call["cum_seq_q"], call["cum_seq_k"], call["scale"])
    return {"out": out, "softmax_lse": _logarithms(scores), "debug_attn_mask": None}


@reference_for("diopiCustomizedFlashAttention")
def customized_flash_attention(call: "ReferenceCall") -> Outputs:
    """The layouts are brought to batch, head, token, channel and back."""
    layout, heads = call["input_layout"], call["head_num"]
    q, k, v = (_unfolded(call[name], layout, heads) for name in "qkv")
    out, scores = attend(q, k, v, call["softmax_scale"], **_seen(call))
    return {"attention_out": _folded(out, layout), **_kept(scores)}


@reference_for("diopiCustomizedFlashAttentionVarLen")
def customized_flash_attention_var_len(call: "ReferenceCall") -> Outputs:
    out, scores = _of_sequences(call, call["cum_seq_q"], call["cum_seq_kv"], call["softmax_scale"])
    kept = [_kept(of_one.transpose(0, 1)) for of_one in scores]
    joined = {name: torch.cat([k[name] for k in kept]) for name in ("softmax_max", "softmax_sum", "softmax_out")}
    return {"attention_out": out, "dropout_mask": None, **joined}


def _unfolded(tensor: torch.Tensor, layout: str, heads: int) -> torch.Tensor:
    if layout == "SBH":
        tensor = tensor.transpose(0, 1)
    if layout in ("BSH", "SBH"):
        tensor = tensor.reshape(*tensor.shape[:2], heads, -1)
    return tensor if layout == "BNSD" else tensor.transpose(1, 2)


def _folded(tensor: torch.Tensor, layout: str) -> torch.Tensor:
    if layout == "BNSD":
        return tensor
    tensor = tensor.transpose(1, 2)
    if layout in ("BSH", "SBH"):
        tensor = tensor.flatten(-2)
    return tensor.transpose(0, 1) if layout == "SBH" else tensor


def _kept(scores: torch.Tensor) -> Outputs:
    """What the customized forms keep of a softmax when nothing is dropped."""
    greatest = scores.amax(-1, keepdim=True)
    total = (scores - greatest).exp().sum(-1, keepdim=True)
    copies = (*scores.shape[:-1], _COPIES)
    return {
        "dropout_mask": None,
        "softmax_max": greatest.expand(copies),
        "softmax_sum": total.expand(copies),
        "softmax_out": torch.empty(0, dtype=scores.dtype),
    }


@reference_for("diopiScaledMaskedSoftmax")
def scaled_masked_softmax(call: "ReferenceCall") -> Outputs:
    source = call["input"] * call["scale"]
    hidden = call["mask"] != 0
    if call["fixed_triu_mask"]:
        hidden = torch.ones(source.shape[-2:], dtype=torch.bool).triu(1)
    return {"output": source.masked_fill(hidden, -1e300).softmax(-1).masked_fill(hidden, 0.0)}


@reference_for("diopiRotaryEmbeddingV2")
def rotary_embedding_v2(call: "ReferenceCall") -> Outputs:
    return {name: _turned(call[name], call["cos"], call["sin"], call["dim"]) for name in ("query", "key")}


def _turned(source: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, dim: int) -> torch.Tensor:
    heads = source.reshape(cos.numel() // dim, -1, dim)
    first, second = heads.chunk(2, dim=-1)
    cos, sin = cos.reshape(-1, 1, dim), sin.reshape(-1, 1, dim)
    return (heads * cos + torch.cat([-second, first], dim=-1) * sin).reshape(source.shape)

"""The attention of a language model's prompt in one call, and the turning of channels that it shares with decoding."""

from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.references.attention import attend
from diopi_conformance.references.registry import SCRATCH, reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]


def turned(heads: torch.Tensor, place: int | torch.Tensor, call: "ReferenceCall") -> torch.Tensor:
    """Neighbouring channels of [..., channels] turned by the angles of a place, or of places, [tokens, 1]."""
    exponents = torch.arange(0, heads.shape[-1], 2, dtype=torch.float64) / call["rotary_embedding"]
    angles = place * call["rope_theta"] ** -exponents
    pairs = torch.view_as_complex(heads.reshape(*heads.shape[:-1], -1, 2).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


@reference_for("diopiFusedContextAttentionInp")
def fused_context_attention(call: "ReferenceCall") -> Outputs:
    """Of sequences that are all as long as the longest one: no argument gives other lengths."""
    length, held, layer = call["max_q_len"], call["max_kv_len"], call["layer_id"]
    places = torch.arange(held - length, held)
    counts = [call["local_head_num"], call["local_kv_head_num"], call["local_kv_head_num"]]
    projected = call["inoutput"] @ call["qkv_weight"]
    if call.get("qkv_bias") is not None:
        projected = projected + call["qkv_bias"]
    caches = {name: call[name].clone() for name in ("key_cache", "value_cache")}
    out = []
    for b, rows in enumerate(projected.reshape(-1, length, sum(counts), call["size_per_head"])):
        q, k, v = (part.transpose(0, 1) for part in rows.split(counts, dim=1))
        q, k = turned(q, places[:, None], call), turned(k, places[:, None], call)
        caches["key_cache"][layer, b, :, places] = k
        caches["value_cache"][layer, b, :, places] = v
        keys, values = (cache[layer, b, :, :held] for cache in caches.values())
        out.append(attend(q, keys, values, call["size_per_head"] ** -0.5, causal=True)[0].transpose(0, 1))
    mixed = torch.stack(out).reshape(call["inoutput"].shape)
    return {"inoutput": mixed, **caches, "pre_work": SCRATCH, "workspace": SCRATCH}

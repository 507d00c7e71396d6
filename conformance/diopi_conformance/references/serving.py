"""Language models at work, sequence by sequence: penalties, the cache of keys and values, attention over it."""

from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.references.attention import attend
from diopi_conformance.references.registry import reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]


@reference_for("diopiApplyPenalty")
def apply_penalty(call: "ReferenceCall") -> Outputs:
    logits, ends = call["logits"].clone(), call["p_cumsum_seq_len"].tolist()
    for b in range(len(ends) - 1):
        of_b = slice(ends[b], ends[b + 1])
        taken = call["frequency_penalty"][b] * call["p_token_counts"][of_b] + call["presence_penalty"][b]
        logits[b, call["p_token_ids"][of_b].long()] -= taken
    return {"logits": logits}


@reference_for("diopiApplyPenaltyV2")
def apply_penalty_v2(call: "ReferenceCall") -> Outputs:
    flat, places = call["logits"].flatten(), call["p_token_ids"].long()
    old, repetition = flat[places], call["repetition_penalty"]
    old = torch.where(old > 0, old / repetition, old * repetition)
    flat = flat.index_copy(
        0, places, old - call["frequency_penalty"] * call["p_token_counts"] - call["presence_penalty"]
    )
    return {"logits": flat.view(call["logits"].shape)}


@reference_for("diopiDestIndexCopyKV")
def dest_index_copy_kv(call: "ReferenceCall") -> Outputs:
    return {"out": call["out"].index_copy(0, call["dest_loc"].long(), call["k"])}


def _sequences(call: "ReferenceCall") -> list[tuple[slice, torch.Tensor]]:
    """Of each sequence its columns among all tokens, and the rows of the cache that hold it."""
    last = call["max_input_len"]
    return [
        (slice(start, start + length), locations[last - length : last].long())
        for start, length, locations in zip(
            call["b_start_loc"].tolist(), call["b_seq_len"].tolist(), call["b_loc"], strict=True
        )
    ]


@reference_for("diopiTokenAttentionInference")
def token_attention_inference(call: "ReferenceCall") -> Outputs:
    out, q, k = call["token_attention_out"].clone(), call["q"], call["k"]
    for b, (columns, rows) in enumerate(_sequences(call)):
        out[:, columns] = torch.einsum("hd,nhd->hn", q[b], k[rows]) / q.shape[-1] ** 0.5
    return {"token_attention_out": out}


@reference_for("diopiTokenSoftmaxReduceVInference")
def token_softmax_reduce_v_inference(call: "ReferenceCall") -> Outputs:
    mixed = [
        torch.einsum("hn,nhd->hd", call["logics"][:, columns].softmax(-1), call["v"][rows])
        for columns, rows in _sequences(call)
    ]
    return {"out": torch.stack(mixed)}


@reference_for("diopiContextAttentionInference")
def context_attention_inference(call: "ReferenceCall") -> Outputs:
    out = torch.zeros_like(call["q"])
    for start, length in zip(call["b_start_loc"].tolist(), call["b_seq_len"].tolist(), strict=True):
        of_b = slice(start, start + length)
        q, k, v = (call[name][of_b].transpose(0, 1) for name in "qkv")
        out[of_b] = attend(q, k, v, q.shape[-1] ** -0.5, causal=True)[0].transpose(0, 1)
    return {"context_attention_out": out}


@reference_for("diopiPromptFlashAttention")
def prompt_flash_attention(call: "ReferenceCall") -> Outputs:
    lengths, width = call["actual_seq_lengths"], call["max_input_len"]
    q = _heads(call["query"], len(lengths), width, call["num_heads"])
    k, v = (_heads(call[name], len(lengths), width, call["num_kv_heads"]) for name in ("key", "value"))
    mask = call.get("atten_mask")
    out = torch.zeros_like(q)
    for b, n in enumerate(lengths):
        seen = None if mask is None else mask[..., :n, :n]
        out[b, :, :n] = attend(q[b, :, :n], k[b, :, :n], v[b, :, :n], call["dim"] ** -0.5, causal=True, mask=seen)[0]
    return {"out": out.transpose(1, 2).reshape(call["query"].shape)}


def _heads(rows: torch.Tensor, batch: int, width: int, heads: int) -> torch.Tensor:
    return rows.reshape(batch, width, heads, -1).transpose(1, 2)


@reference_for("diopiPagedAttention")
def paged_attention(call: "ReferenceCall") -> Outputs:
    size, mask = call["block_size"], call.get("attenMask")
    q = call["q"].reshape(len(call["actual_seq_lengths"]), call["num_heads"], 1, -1)
    out = torch.zeros_like(q)
    for b, n in enumerate(call["actual_seq_lengths"]):
        blocks = call["block_table"][b].long()
        rows = (blocks[:, None] * size + torch.arange(size)).flatten()[:n]
        k, v = (call[name][rows].reshape(n, call["num_kv_heads"], -1).transpose(0, 1) for name in "kv")
        seen = None if mask is None else mask.expand(len(q), -1)[b, :n]
        out[b] = attend(q[b], k, v, call["dim"] ** -0.5, mask=seen)[0]
    return {"out": out.reshape(call["q"].shape)}


@reference_for("diopiMatmulAllReduce")
def matmul_all_reduce(call: "ReferenceCall") -> Outputs:
    """Of one process."""
    out = call["x1"] @ call["x2"]
    return {"out": out if call.get("bias") is None else out + call["bias"]}

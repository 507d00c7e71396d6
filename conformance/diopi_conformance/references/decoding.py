"""From tokens to logits and back, written out sequence by sequence: layers, penalties, bans, lengths."""

from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.references.attention import attend
from diopi_conformance.references.prompts import turned
from diopi_conformance.references.registry import SCRATCH, reference_for
from diopigen.vocabulary.torch_dtypes import TORCH_DTYPES

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]

_LARGEST_K = 1024


def _normalized(rows: torch.Tensor, call: "ReferenceCall") -> Any:
    return rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + call["eps"]) * call["scale"]


@reference_for("diopiRootMeanSquareNormInp")
def root_mean_square_norm(call: "ReferenceCall") -> Outputs:
    return {"inoutput": _normalized(call["inoutput"], call)}


@reference_for("diopiFusedAddRootMeanSquareNormInp")
def fused_add_root_mean_square_norm(call: "ReferenceCall") -> Outputs:
    total = call["residual"] + call["inoutput"]
    if call.get("bias") is not None:
        total = total + call["bias"]
    return {"residual": total, "inoutput": _normalized(total, call)}


@reference_for("diopiInputIdsEmbeddingLookupPosEncoding")
def input_ids_embedding_lookup(call: "ReferenceCall") -> Outputs:
    return {"from_tensor": call["embedding_table"][call["input_ids"].long()]}


@reference_for("diopiEmbeddingLookupPosEncoding")
def embedding_lookup(call: "ReferenceCall") -> Outputs:
    return {"from_tensor": call["embedding_table"][call["all_ids"][call["step"]].long()]}


@reference_for("diopiTransposeAxis01")
def transpose_axis01(call: "ReferenceCall") -> Outputs:
    return {"output": call["input"].transpose(0, 1)}


@reference_for("diopiPlusScalarInp")
def plus_scalar(call: "ReferenceCall") -> Outputs:
    first = torch.arange(call["inoutput"].numel()) < call["size"]
    return {"inoutput": torch.where(first, call["inoutput"] + call["val"], call["inoutput"])}


@reference_for("diopiUpdatePaddingCount")
def update_padding_count(call: "ReferenceCall") -> Outputs:
    return {"total_padding_count": call["max_input_length"] - call["input_lengths"]}


@reference_for("diopiGatherOutput")
def gather_output(call: "ReferenceCall") -> Outputs:
    out = call["output_ids"].clone()
    for b, context in enumerate(call["context_length"].tolist()):
        column = call["ids"][: call["max_gen_step"], b]
        tokens = torch.cat([column[:context], column[call["max_context_len"] :]])[: call["max_output_len"]]
        out[b, : len(tokens)] = tokens
    return {"output_ids": out}


def _words(rows: torch.Tensor) -> list[list[int]]:
    """The words of a list of tokens and a list of ends, which -1 fills up."""
    tokens, ends = rows.tolist()
    ends = [end for end in ends if end >= 0]
    return [tokens[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


@reference_for("diopiStopWordsCriterion")
def stop_words_criterion(call: "ReferenceCall") -> Outputs:
    finished = call["finished"].clone()
    for b, rows in enumerate(call["stop_words"]):
        tokens = call["output_ids"][: call["step"] + 1, call["id_offset"] + b].tolist()
        finished[b] |= any(tokens[-len(word) :] == word for word in _words(rows))
    return {"finished": finished}


@reference_for("diopiBanBadWordsInp")
def ban_bad_words(call: "ReferenceCall") -> Outputs:
    logits = call["logits"].clone()
    for b in range(call["batch_size"]):
        tokens = call["output_ids"][: call["step"], call["id_offset"] + b].tolist()
        for *begin, last in _words(call["bad_words"] if call["share_words"] else call["bad_words"][b]):
            if 0 < last < call["vocab_size"] and (not begin or tokens[-len(begin) :] == begin):
                logits[b, last] = -torch.inf
    return {"logits": logits}


@reference_for("diopiLengthCriterion")
def length_criterion(call: "ReferenceCall") -> Outputs:
    finished = call["finished"] | (call["step"] >= call["sequence_limit_length"])
    return {"finished": finished, "finished_sum": finished.sum()[None], "should_stop": finished.all()[None]}


@reference_for("diopiBatchApplyTemperaturePenaltyInp")
def temperature_penalty(call: "ReferenceCall") -> Outputs:
    logits, size = call["logits"].clone(), call["vocab_size"]
    shifted = logits if call.get("bias") is None else logits + call["bias"]
    logits[:, :size] = shifted[:, :size] / (call["temperatures"][:, None] + 1e-6)
    logits[:, size:] = torch.finfo(TORCH_DTYPES[call.dtypes["logits"]]).min
    return {"logits": logits}


@reference_for("diopiBatchApplyRepetitionPenaltyInp")
def repetition_penalty(call: "ReferenceCall") -> Outputs:
    logits, longest = call["logits"].clone(), call["max_input_length"]
    for b, penalty in enumerate(call["penalties"]):
        column = call["output_ids"][: call["step"], b]
        own = longest if call.get("input_lengths") is None else int(call["input_lengths"][b])
        tokens = torch.cat([column[:own], column[longest:]])
        old = call["logits"][b, tokens]
        scaled = torch.where(old < 0, old * penalty, old / penalty)
        logits[b, tokens] = {0: old, 1: old - penalty, 2: scaled}[call["penalty_type"]]
    return {"logits": logits}


def _chosen(call: "ReferenceCall", which: str, size: str) -> torch.Tensor:
    """The values of all sequences: their own, or one for all."""
    own: torch.Tensor = call[f"{which}s"]
    return own if call[size] > 0 else torch.full_like(own, call[which])


@reference_for("diopiSetupTopkRuntimeArgsInp")
def setup_topk_runtime_args(call: "ReferenceCall") -> Outputs:
    k, p = _chosen(call, "top_k", "top_ks_size"), _chosen(call, "top_p", "top_ps_size")
    k = torch.where((k == 0) & (p == 0), 1, k)
    p = torch.where((k > 0) & (p == 0), 1.0, p)
    return {"top_ks": k.clamp(max=_LARGEST_K), "top_ps": p.clamp(0, 1), "skip_decode": k == 0}


@reference_for("diopiSetupToppRuntimeArgsInp")
def setup_topp_runtime_args(call: "ReferenceCall") -> Outputs:
    k, p = _chosen(call, "top_k", "top_ks_size"), _chosen(call, "top_p", "top_ps_size").clamp(0, 1)
    k = torch.where((k == 0) & (p == 0), 1, k)
    decay = call["top_p_decay"] if 0 < call["top_p_decay"] <= 1 else 1.0
    least = call["top_p_min"] if 0 < call["top_p_min"] <= 1 else 0.5
    return {
        "top_ks": k,
        "top_ps": p,
        "skip_decode": k > 0,
        "initial_top_p_buf": p,
        "top_p_decay_buf": torch.full_like(p, decay),
        "top_p_min_buf": torch.full_like(p, least),
        "top_p_reset_ids_buf": torch.full_like(k, call["top_p_reset_ids"]),
    }


@reference_for("diopiFusedSiluFfnInp")
def fused_silu_ffn(call: "ReferenceCall") -> Outputs:
    gated = torch.nn.functional.silu(call["inoutput"] @ call["weight1"]) * (call["inoutput"] @ call["weight3"])
    return {"inoutput": gated @ call["weight2"], "workspace": SCRATCH}


@reference_for("diopiFusedDecoderAttentionInp")
def fused_decoder_attention(call: "ReferenceCall") -> Outputs:
    out, caches = call["inoutput"].clone(), {name: call[name].clone() for name in ("key_cache", "value_cache")}
    counts = [call["local_head_num"], call["local_kv_head_num"], call["local_kv_head_num"]]
    projected = (call["inoutput"] @ call["qkv_weight"] + call.get("qkv_bias", 0)).reshape(len(out), sum(counts), -1)
    running = ~call.get("finished", torch.zeros(len(out), dtype=torch.bool))
    for b in running.nonzero().flatten().tolist():
        place = call["step"] - 1 - int(call["total_padding_tokens"][b])
        q, k, v = projected[b].split(counts)
        q, k = turned(q, place, call), turned(k, place, call)
        past, longest = int(call["sequence_lengths"][b]), call["max_seq_len"]
        held = {}
        for name, fresh in (("key_cache", k), ("value_cache", v)):
            caches[name][call["layer_id"], b, :, past % longest] = fresh
            held[name] = caches[name][call["layer_id"], b, :, : min(past + 1, longest)]
        scale = call["size_per_head"] ** -0.5
        out[b] = attend(q[:, None], held["key_cache"], held["value_cache"], scale)[0].flatten()
    return {"inoutput": out, **caches, "workspace": SCRATCH}


@reference_for("diopiTopKSampling", "diopiTopPSampling")
def sampling_of_one(call: "ReferenceCall") -> Outputs:
    """Only for limits that leave one token: which of several is drawn is not foreseen."""
    ids, finished, lengths = call["output_ids"].clone(), call["finished"].clone(), call["sequence_lengths"].clone()
    sums, last = call["cum_log_probs"].clone(), call["output_log_probs"].clone()
    log_probs = call["logits"].log_softmax(-1)
    decoded = ~call.get("skip_decode", torch.zeros_like(finished))
    for b in decoded.nonzero().flatten().tolist():
        if finished[b]:
            ids[call["step"], b] = call["end_ids"][b]
            continue
        ids[call["step"], b] = token = int(log_probs[b].argmax())
        lengths[b] += 1
        finished[b] = token == call["end_ids"][b]
        sums[b] += log_probs[b, token]
        # Of the one token among those that may be drawn, or of it among all.
        last[b] = 0.0 if "runtime_top_k" in call.values else log_probs[b, token]
    found: Outputs = {"output_ids": ids, "finished": finished, "sequence_lengths": lengths}
    found |= {"cum_log_probs": sums, "output_log_probs": last}
    found |= {name: SCRATCH for name in ("logits", "workspace", "persistent_workspace") if name in call.values}
    return found if "runtime_top_k" in call.values else {**found, "runtime_top_p": call["runtime_top_p"]}

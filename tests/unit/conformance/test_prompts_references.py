"""The attention of a prompt against loops over tokens, and against decoding token by token."""

import math
from typing import Any

import pytest
import torch

from diopi_conformance.references.registry import SCRATCH
from tests.unit.conformance.written import numbers, reference

Tensor = torch.Tensor
HEADS, KV_HEADS, SIZE, THETA = 4, 2, 6, 50.0


def prompt(tokens: Tensor, caches: dict[str, Tensor], length: int, held: int, bias: Tensor | None) -> dict[str, Any]:
    return reference(
        "diopiFusedContextAttentionInp", **layer(bias), **caches, inoutput=tokens, max_q_len=length, max_kv_len=held
    )


def layer(bias: Tensor | None) -> dict[str, Any]:
    width = (HEADS + 2 * KV_HEADS) * SIZE
    sizes = {"local_head_num": HEADS, "local_kv_head_num": KV_HEADS, "size_per_head": SIZE, "max_seq_len": 8}
    weights = {"qkv_weight": numbers(HEADS * SIZE, width, seed=1) / 4, "qkv_bias": bias}
    return {**sizes, **weights, "layer_id": 1, "rotary_embedding": SIZE, "rope_theta": THETA}


def blank_caches(batch: int) -> dict[str, Tensor]:
    return {
        name: numbers(2, batch, KV_HEADS, 8, SIZE, seed=i) for i, name in enumerate(("key_cache", "value_cache"), 5)
    }


def turn(head: Tensor, place: int) -> list[float]:
    found = []
    for i in range(0, SIZE, 2):
        angle = place / THETA ** (i / SIZE)
        x, y = float(head[i]), float(head[i + 1])
        found += [x * math.cos(angle) - y * math.sin(angle), x * math.sin(angle) + y * math.cos(angle)]
    return found


@pytest.mark.parametrize("biased", [True, False])
def test_each_token_attends_to_itself_and_those_before_it(biased: bool) -> None:
    tokens, caches = numbers(6, HEADS * SIZE), blank_caches(2)
    bias = numbers(1, (HEADS + 2 * KV_HEADS) * SIZE, seed=2) if biased else None
    found = prompt(tokens, caches, length=3, held=5, bias=bias)
    assert found["pre_work"] is found["workspace"] is SCRATCH
    projected = tokens @ layer(bias)["qkv_weight"] + (0 if bias is None else bias)
    rows = projected.reshape(2, 3, HEADS + 2 * KV_HEADS, SIZE)
    for b in range(2):
        keys, values = caches["key_cache"][1, b].clone(), caches["value_cache"][1, b].clone()
        for t in range(3):
            for h in range(KV_HEADS):
                keys[h, 2 + t] = torch.tensor(turn(rows[b, t, HEADS + h], 2 + t))
                values[h, 2 + t] = rows[b, t, HEADS + KV_HEADS + h]
        torch.testing.assert_close(found["key_cache"][1, b], keys)
        torch.testing.assert_close(found["value_cache"][1, b], values)
        for t in range(3):
            for h in range(HEADS):
                query, kv = torch.tensor(turn(rows[b, t, h], 2 + t)).double(), h * KV_HEADS // HEADS
                weights = torch.stack([query @ keys[kv, j] / SIZE**0.5 for j in range(3 + t)]).softmax(0)
                expected = (weights[:, None] * values[kv, : 3 + t]).sum(0)
                torch.testing.assert_close(found["inoutput"][b * 3 + t, h * SIZE : (h + 1) * SIZE], expected)
    assert torch.equal(found["key_cache"][0], caches["key_cache"][0])


def test_decoding_goes_on_where_a_prompt_ends() -> None:
    tokens, bias = numbers(5, HEADS * SIZE), numbers(1, (HEADS + 2 * KV_HEADS) * SIZE, seed=2)
    whole = prompt(tokens, blank_caches(1), length=5, held=5, bias=bias)
    begun = prompt(tokens[:4], blank_caches(1), length=4, held=4, bias=bias)
    caches = {name: begun[name] for name in ("key_cache", "value_cache")}
    last = reference(
        "diopiFusedDecoderAttentionInp",
        **{**layer(bias), **caches, "inoutput": tokens[4:], "finished": torch.tensor([False]), "step": 5},
        **{"total_padding_tokens": torch.tensor([0]), "sequence_lengths": torch.tensor([4])},
    )
    torch.testing.assert_close(last["inoutput"], whole["inoutput"][4:])
    torch.testing.assert_close(last["key_cache"], whole["key_cache"])
    torch.testing.assert_close(last["value_cache"], whole["value_cache"])

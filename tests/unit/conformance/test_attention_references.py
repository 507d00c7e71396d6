"""The written references of attention against PyTorch's own attention, and the cache against whole sequences."""

from typing import Any

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from diopi_conformance.references import written_reference
from diopi_conformance.references.attention import attend


class Call(dict[str, Any]):
    """What references read of a call."""


def reference(symbol: str, **values: Any) -> dict[str, Any]:
    function: Any = type("Function", (), {"symbol": symbol})
    written = written_reference(function)
    assert written is not None
    call: Any = Call(values)
    return written(call)


def tokens(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


WIDE = {"alibi_slopes": None, "is_causal": False, "window_size_left": -1, "window_size_right": -1}


@pytest.mark.parametrize("causal", [False, True])
def test_flash_attention_is_pytorchs_attention(causal: bool) -> None:
    q, k, v = tokens(2, 6, 4, 8), tokens(2, 6, 2, 8), tokens(2, 6, 2, 8) + 1
    given = {**WIDE, "is_causal": causal}
    found = reference("diopiFlashAttention", q=q, k=k, v=v, softmax_scale=0.3, **given)
    heads = (t.transpose(1, 2) for t in (q, k, v))
    expected = scaled_dot_product_attention(*heads, is_causal=causal, scale=0.3, enable_gqa=True)
    torch.testing.assert_close(found["attention_out"], expected.transpose(1, 2))
    assert found["softmax_lse"].shape == (2, 4, 6)


def test_windows_and_slopes_are_a_bias() -> None:
    q, k, v = tokens(3, 4, 8), tokens(3, 7, 8), tokens(3, 7, 8) + 1
    slopes = torch.tensor([0.5, 0.25, 0.125], dtype=torch.float64)
    found, _ = attend(q, k, v, 0.3, slopes=slopes, left=2, right=1)
    distance = torch.arange(7) - (torch.arange(4) + 3)[:, None]
    bias = -slopes[:, None, None] * distance.abs()
    bias = bias.masked_fill((distance < -2) | (distance > 1), -torch.inf)
    torch.testing.assert_close(found, scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=0.3))


def test_a_query_that_sees_nothing_gives_zeros_and_has_a_gradient() -> None:
    q = tokens(1, 4, 8).requires_grad_(True)
    found, scores = attend(q, tokens(1, 2, 8), tokens(1, 2, 8), 0.3, causal=True)
    assert not found[0, :2].any()
    assert found[0, 2:].all()
    assert scores[0, 0].tolist() == [-torch.inf, -torch.inf]
    found.sum().backward()
    assert q.grad is not None
    assert q.grad.isfinite().all()


def test_the_log_sums_turn_scores_into_weights() -> None:
    q, k, v = tokens(1, 5, 2, 8), tokens(1, 5, 2, 8), tokens(1, 5, 2, 8) + 1
    found = reference("diopiFlashAttention", q=q, k=k, v=v, softmax_scale=0.3, **WIDE)
    scores = q.transpose(1, 2) @ k.transpose(1, 2).transpose(-1, -2) * 0.3
    weights = (scores - found["softmax_lse"][..., None]).exp()
    torch.testing.assert_close((weights @ v.transpose(1, 2)).transpose(1, 2), found["attention_out"])


def test_sequences_behind_each_other_attend_to_themselves_only() -> None:
    q, k, v = tokens(9, 2, 8), tokens(9, 2, 8) + 1, tokens(9, 2, 8) - 1
    ends = torch.tensor([0, 4, 8])
    found = reference(
        "diopiFlashAttentionVarLen", q=q, k=k, v=v, cum_seq_q=ends, cum_seq_kv=ends, softmax_scale=0.3, **WIDE
    )
    alone = reference("diopiFlashAttention", q=q[None, 4:8], k=k[None, 4:8], v=v[None, 4:8], softmax_scale=0.3, **WIDE)
    torch.testing.assert_close(found["attention_out"][4:8], alone["attention_out"][0])
    torch.testing.assert_close(found["softmax_lse"][1], alone["softmax_lse"][0])


@pytest.mark.parametrize("layout", ["BSH", "SBH", "BSND", "BNSD"])
def test_every_layout_gives_the_same(layout: str) -> None:
    q, k, v = tokens(2, 5, 3, 8), tokens(2, 5, 3, 8) + 1, tokens(2, 5, 3, 8) - 1
    expected = reference("diopiFlashAttention", q=q, k=k, v=v, softmax_scale=0.3, **WIDE)["attention_out"]

    def laid_out(t: torch.Tensor) -> torch.Tensor:
        flat = t.flatten(2)
        return {"BSH": flat, "SBH": flat.transpose(0, 1), "BSND": t, "BNSD": t.transpose(1, 2)}[layout]

    inputs = {"q": laid_out(q), "k": laid_out(k), "v": laid_out(v)}
    found = reference(
        "diopiCustomizedFlashAttention", **inputs, softmax_scale=0.3, head_num=3, input_layout=layout, **WIDE
    )
    torch.testing.assert_close(found["attention_out"], laid_out(expected))


def test_a_paged_cache_holds_what_a_prompt_left() -> None:
    """The last token's attention over blocks in any order is the last row of the whole sequence's."""
    q, k, v = tokens(7, 16), tokens(7, 16) + 1, tokens(7, 16) - 1
    heads = [t.reshape(7, 2, 8).transpose(0, 1) for t in (q, k, v)]
    whole = attend(*heads, 8**-0.5, causal=True)[0].transpose(0, 1).reshape(7, 16)
    cache_k, cache_v = torch.zeros(12, 16, dtype=torch.float64), torch.zeros(12, 16, dtype=torch.float64)
    rows = torch.tensor([8, 9, 10, 11, 0, 1, 2])
    cache_k[rows], cache_v[rows] = k, v
    found = reference(
        "diopiPagedAttention",
        q=q[-1:],
        k=cache_k,
        v=cache_v,
        actual_seq_lengths=[7],
        num_heads=2,
        num_kv_heads=2,
        dim=8,
        block_table=torch.tensor([[2, 0]]),
        block_size=4,
    )
    torch.testing.assert_close(found["out"], whole[-1:])


def test_token_attention_in_two_steps_is_attention() -> None:
    q, k, v = tokens(1, 2, 8), tokens(6, 2, 8) + 1, tokens(6, 2, 8) - 1
    shared = {
        "b_loc": torch.tensor([[5, 1, 4, 2]]),
        "b_start_loc": torch.tensor([1]),
        "b_seq_len": torch.tensor([3]),
        "max_input_len": 4,
    }
    blank = torch.zeros(2, 5, dtype=torch.float64)
    scores = reference("diopiTokenAttentionInference", token_attention_out=blank, q=q, k=k, **shared)
    logics = scores["token_attention_out"]
    assert not logics[:, [0, 4]].any()
    found = reference("diopiTokenSoftmaxReduceVInference", logics=logics, v=v, other_kv_index=0, **shared)
    rows = [1, 4, 2]
    expected, _ = attend(q.transpose(0, 1), k[rows].transpose(0, 1), v[rows].transpose(0, 1), 8**-0.5)
    torch.testing.assert_close(found["out"][0], expected[:, 0])

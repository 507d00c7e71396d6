"""Attention with dropout, whose weights no stored case can foresee, against torch's with the same weights kept."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent / "kernels"))
from portable import ERROR, Portable, build

DROPPED = 0.4
SCALE = 0.35


@pytest.fixture(scope="module")
def kernels() -> Portable:
    names = ("flash_attention", "serving_attention")
    return Portable(build(names))


def drawn(*sizes: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(sizes))
    return torch.randn(sizes, generator=generator, dtype=torch.float64, requires_grad=True)


def expected(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, kept: torch.Tensor, slopes: torch.Tensor, right: int
) -> torch.Tensor:
    """Of (sequence, token, head, channel), the keys further than `right` behind a query hidden."""
    share = q.shape[2] // k.shape[2]
    k, v = k.repeat_interleave(share, 2), v.repeat_interleave(share, 2)
    distance = torch.arange(k.shape[1]) - torch.arange(q.shape[1])[:, None] - (k.shape[1] - q.shape[1])
    scores = torch.einsum("bihd,bjhd->bhij", q, k) * SCALE - slopes[:, None, None] * distance.abs()
    weights = scores.masked_fill(distance > right, -torch.inf).softmax(-1) * kept / (1 - DROPPED)
    return torch.einsum("bhij,bjhd->bihd", weights, v)


def assert_gradients(out: torch.Tensor, grad: torch.Tensor, pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
    wanted = torch.autograd.grad(out, [source for source, _ in pairs], grad)
    for (_, found), exact in zip(pairs, wanted, strict=True):
        torch.testing.assert_close(found, exact)


def test_dropout_of_multi_head_attention(kernels: Portable) -> None:
    q, k, v, grad = drawn(2, 5, 4, 9), drawn(2, 7, 2, 9), drawn(2, 7, 2, 9), drawn(2, 5, 4, 9).detach()
    out, lse, kept = torch.empty(2, 5, 4, 9).double(), torch.empty(2, 4, 5).double(), torch.empty(2, 4, 5, 7).bool()
    generator = kernels.generator(3)
    kernels("diopiMultiHeadAttention", q, k, v, DROPPED, True, True, SCALE, out, lse, generator, kept)
    wanted = expected(q, k, v, kept, torch.zeros(4), right=0)
    torch.testing.assert_close(out, wanted.detach())
    assert 0.5 < kept.double().mean() < 0.7
    grads = [torch.full_like(x, torch.nan) for x in (q, k, v)]
    kernels("diopiMultiHeadAttentionBackward", grad, q, k, v, out, lse, DROPPED, True, generator, SCALE, *grads)
    assert_gradients(wanted, grad, list(zip((q, k, v), grads, strict=True)))


def test_dropout_of_flash_attention(kernels: Portable) -> None:
    """It draws as the other form does, so that the other form can show what was kept."""
    q, k, v, grad = drawn(2, 6, 4, 140), drawn(2, 6, 2, 140), drawn(2, 6, 2, 140), drawn(2, 6, 4, 140).detach()
    out, lse, kept = torch.empty(q.shape).double(), torch.empty(2, 4, 6).double(), torch.empty(2, 4, 6, 6).bool()
    kernels(
        "diopiMultiHeadAttention",
        q,
        k,
        v,
        float(torch.tensor(DROPPED)),
        False,
        True,
        SCALE,
        out,
        lse,
        kernels.generator(5),
        kept,
    )
    slopes, generator = torch.tensor([0.5, 0.25, 0.0, 1.0]), kernels.generator(5)
    options = (DROPPED, SCALE, False, -1, 1)
    kernels("diopiFlashAttention", out, lse, generator, q, k, v, slopes, *options)
    wanted = expected(q, k, v, kept, slopes, right=1)
    torch.testing.assert_close(out, wanted.detach(), rtol=1e-5, atol=1e-5)  # float arguments
    grads: list[Any] = [torch.full_like(x, torch.nan) for x in (q, k, v)]
    kernels("diopiFlashAttentionBackward", *grads, grad, generator, q, k, v, slopes, out, lse, *options)
    found = torch.autograd.grad(wanted, [q, k, v], grad)
    for actual, exact in zip(grads, found, strict=True):
        torch.testing.assert_close(actual, exact, rtol=1e-5, atol=1e-5)


def test_sequences_draw_alone_and_tokens_of_none_get_zeros(kernels: Portable) -> None:
    q, k, v, grad = drawn(9, 2, 8), drawn(8, 2, 8), drawn(8, 2, 8), drawn(9, 2, 8).detach()
    ends_q, ends_k = torch.tensor([1, 4, 4, 8]), torch.tensor([0, 5, 6, 8])
    out, lse = torch.full_like(q, torch.nan).detach(), torch.empty(3, 2, 4).double()
    kept, generator = torch.empty(3, 2, 4, 5).bool(), kernels.generator(3)
    rest = (ends_q, ends_k, 4, 5, DROPPED, True)
    kernels("diopiMultiHeadAttentionVarLen", q, k, v, *rest, True, SCALE, out, lse, generator, kept)
    wanted = torch.zeros_like(q)
    for b in (0, 2):
        of_q, of_k = slice(ends_q[b], ends_q[b + 1]), slice(ends_k[b], ends_k[b + 1])
        queries, keys = ends_q[b + 1] - ends_q[b], ends_k[b + 1] - ends_k[b]
        of_b = expected(q[None, of_q], k[None, of_k], v[None, of_k], kept[b, :, :queries, :keys], torch.zeros(2), 0)
        wanted = wanted.index_add(0, torch.arange(ends_q[b], ends_q[b + 1]), of_b[0].nan_to_num())
    torch.testing.assert_close(out, wanted.detach())
    grads = [torch.full_like(x, torch.nan) for x in (q, k, v)]
    kernels("diopiMultiHeadAttentionVarLenBackward", grad, q, k, v, out, lse, *rest, generator, SCALE, *grads)
    assert grads[0][0].eq(0).all() and grads[0][8].eq(0).all() and grads[1][5].eq(0).all()
    assert not any(g.isnan().any() for g in grads)
    torch.testing.assert_close((grads[2] * v).sum(), (out * grad).sum())  # the output is linear in v


def test_everything_may_be_dropped(kernels: Portable) -> None:
    q, out, lse = drawn(1, 3, 1, 4), torch.empty(1, 3, 1, 4).double(), torch.empty(1, 1, 3).double()
    kernels("diopiMultiHeadAttention", q, q, q, 1.0, False, False, SCALE, out, lse, kernels.generator(1), None)
    assert out.eq(0).all()


def test_a_page_may_lie_anywhere(kernels: Portable) -> None:
    """The lengths are in host memory, and more than one launch carries."""
    count = 150
    q, k, v = drawn(count, 8).detach(), drawn(count * 4, 8).detach(), drawn(count * 4, 8).detach()
    blocks = torch.randperm(count * 2, generator=torch.Generator().manual_seed(1)).view(count, 2)
    lengths, out = [1 + b % 4 for b in range(count)], torch.empty_like(q)
    kernels("diopiPagedAttention", out, q, k, v, None, lengths, 1, 1, 8, blocks, 2)
    for b, length in enumerate(lengths):
        rows = (blocks[b, :, None] * 2 + torch.arange(2)).flatten()[:length]
        weights = (k[rows] @ q[b] / 8**0.5).softmax(0)
        torch.testing.assert_close(out[b], weights @ v[rows])


def test_arguments_that_do_not_fit(kernels: Portable) -> None:
    q, k, lse = torch.zeros(1, 3, 3, 4), torch.zeros(1, 3, 2, 4), torch.zeros(1, 3, 3)
    options = (None, 0.0, SCALE, False, -1, -1)
    assert kernels.status("diopiFlashAttention", q.clone(), lse, None, q, k, k, *options) == ERROR
    assert kernels.last_error() == "2 heads of keys do not serve 3 heads of queries alike"
    assert kernels.status("diopiFlashAttention", q.clone(), lse[:, :2], None, q, q, q, *options) == ERROR
    assert kernels.last_error() == "what is kept of the softmax has one place for each sequence, head and query"
    assert kernels.status("diopiFlashAttention", q.clone(), lse, None, q, q, q, None, 1.5, *options[2:]) == ERROR

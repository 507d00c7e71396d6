"""Which attention a launcher's library is asked for, with what rows; against torch in float64."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent / "kernels"))
from portable import FLAGS, Portable, build

PARTS = Path(__file__).parent / "kernels"
LIBRARY = (*FLAGS, "-I", str(PARTS), '-DDIOPI_LAUNCHER_HEADER="library_attention.h"')
SCALE = 0.3
QUERIES, KEYS, HEADS, SHARED, CHANNELS = 5, 7, 4, 2, 16
PLAIN: dict[str, Any] = {"slopes": None, "causal": False, "left": -1, "right": -1}


class Library:
    def __init__(self, path: Path) -> None:
        self.kernels = Portable(path)
        self._calls = ctypes.CDLL(str(path)).library_attention_calls
        self._lacks = ctypes.CDLL(str(path)).library_attention_lacks

    def calls(self) -> tuple[int, int]:
        """Of the forward and the backward step, so far."""
        return self._calls(0), self._calls(1)

    @contextmanager
    def lacking(self, *, backward: bool = False, gaps: bool = False) -> Iterator[None]:
        """The backward step, or rows with gaps."""
        self._lacks(backward, gaps)
        try:
            yield
        finally:
            self._lacks(False, False)


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(build(("flash_attention", "fused_layers"), LIBRARY))


def drawn(*sizes: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed + sum(sizes))
    return torch.randn(sizes, generator=generator, dtype=torch.float64).half()


def inputs(queries: int = QUERIES, channels: int = CHANNELS) -> list[torch.Tensor]:
    """Queries, keys, values and the gradient of the result: (sequence, token, head, channel)."""
    sizes = ((queries, HEADS), (KEYS, SHARED), (KEYS, SHARED), (queries, HEADS))
    return [drawn(2, *size, channels, seed=seed) for seed, size in enumerate(sizes)]


def expected(tensors: list[torch.Tensor], options: dict[str, Any]) -> tuple[torch.Tensor, ...]:
    """The result, the logarithms of sums, and the gradients."""
    q, k, v = (tensor.double().requires_grad_() for tensor in tensors[:3])
    wide_k, wide_v = (tensor.repeat_interleave(q.shape[2] // k.shape[2], 2) for tensor in (k, v))
    distance = torch.arange(k.shape[1]) - torch.arange(q.shape[1])[:, None] - (k.shape[1] - q.shape[1])
    scores = torch.einsum("bihd,bjhd->bhij", q, wide_k) * SCALE
    if options["slopes"] is not None:
        scores = scores - options["slopes"][:, None, None] * distance.abs()
    right = 0 if options["causal"] else options["right"]
    hidden = (distance > right) if right >= 0 else torch.zeros_like(distance, dtype=torch.bool)
    hidden |= distance < -options["left"] if options["left"] >= 0 else False
    scores = scores.masked_fill(hidden, -torch.inf)
    out = torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), wide_v)
    return (out.detach(), scores.logsumexp(-1).detach(), *torch.autograd.grad(out, (q, k, v), tensors[3].double()))


def run(library: Library, tensors: list[torch.Tensor], **changes: Any) -> tuple[int, int]:
    """Holds both steps against torch; gives how often the library was asked for each."""
    options = {**PLAIN, **changes}
    given = (options["slopes"], 0.0, SCALE, options["causal"], options["left"], options["right"])
    q, k, v, grad = tensors
    before = library.calls()
    out, lse = torch.full_like(q, torch.nan), torch.full((2, HEADS, q.shape[1]), torch.nan)
    library.kernels("diopiFlashAttention", out, lse, None, q, k, v, *given)
    grads = [torch.full(x.shape, torch.nan, dtype=x.dtype) for x in (q, k, v)]
    slopes, *rest = given
    library.kernels("diopiFlashAttentionBackward", *grads, grad, None, q, k, v, slopes, out, lse, *rest)
    for found, wanted in zip((out, lse, *grads), expected(tensors, options), strict=True):
        torch.testing.assert_close(found.double(), wanted, rtol=1e-2, atol=1e-2)
    after = library.calls()
    return after[0] - before[0], after[1] - before[1]


@pytest.mark.parametrize("causal", [False, True])
def test_it_serves_heads_of_one_length(library: Library, causal: bool) -> None:
    assert run(library, inputs(), causal=causal) == (1, 1)
    assert run(library, inputs(queries=KEYS), causal=causal) == (1, 1)
    assert run(library, inputs(), right=0) == (1, 1)  # the same window


def test_rows_lie_where_they_are(library: Library) -> None:
    heads_first = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in inputs()]
    assert run(library, heads_first, causal=True) == (1, 1)
    parts = drawn(2, QUERIES, 3, HEADS, CHANNELS)
    joined = [*parts.unbind(2), drawn(2, QUERIES, HEADS, CHANNELS, seed=9)]
    assert joined[1].stride(1) == 3 * HEADS * CHANNELS
    assert run(library, joined, causal=True) == (1, 1)


def test_rows_that_it_cannot_read_are_copied(library: Library) -> None:
    q, k, v, grad = inputs()
    shifted = drawn(2 * QUERIES * HEADS * CHANNELS + 1)[1:].view(q.shape)
    channels_apart = k.transpose(2, 3).contiguous().transpose(2, 3)
    assert run(library, [shifted, channels_apart, v, grad]) == (1, 1)
    assert run(library, [q, k, v, torch.ones((), dtype=torch.half).expand(grad.shape)]) == (1, 1)
    assert run(library, [q, k[:, :, :1].expand(k.shape), v, grad]) == (1, 1)


def test_what_it_is_not_asked_for(library: Library) -> None:
    slopes = torch.tensor([0.5, 0.25, 0.0, 1.0])
    assert run(library, inputs(), slopes=slopes) == (0, 0)
    assert run(library, inputs(), left=2) == (0, 0)
    assert run(library, inputs(), right=1) == (0, 0)
    assert run(library, inputs(queries=1)) == (0, 0)
    assert run(library, inputs(channels=12)) == (0, 0)
    assert run(library, [x.bfloat16() for x in inputs()]) == (0, 0)  # this library has none


def test_a_causal_query_before_all_keys(library: Library) -> None:
    q, k, v, _ = inputs(queries=KEYS + 2)
    before = library.calls()
    out, lse = torch.full_like(q, torch.nan), torch.empty(2, HEADS, KEYS + 2)
    library.kernels("diopiFlashAttention", out, lse, None, q, k, v, None, 0.0, SCALE, True, -1, -1)
    assert library.calls() == before
    assert out[:, :2].eq(0).all() and not out.isnan().any()


def test_each_path_reads_what_the_other_kept(library: Library) -> None:
    q, k, v, grad = inputs()
    wanted = expected([q, k, v, grad], PLAIN)
    out, gaps = torch.empty_like(q), torch.empty(2, HEADS, 2 * QUERIES)[..., ::2]
    before = library.calls()
    library.kernels("diopiFlashAttention", out, gaps, None, q, k, v, None, 0.0, SCALE, False, -1, -1)
    assert library.calls() == (before[0] + 1, before[1])  # sums and results that it cannot write are copied there
    torch.testing.assert_close(gaps.double(), wanted[1], rtol=1e-4, atol=1e-4)
    for lse, lacks, calls in ((gaps.contiguous(), False, 1), (gaps, False, 1), (gaps, True, 0)):
        before = library.calls()
        grads = [torch.full_like(x, torch.nan) for x in (q, k, v)]
        rest = (None, out, lse, 0.0, SCALE, False, -1, -1)
        with library.lacking(backward=lacks):
            library.kernels("diopiFlashAttentionBackward", *grads, grad, None, q, k, v, *rest)
        assert library.calls() == (before[0], before[1] + calls)
        for found, exact in zip(grads, wanted[2:], strict=True):
            torch.testing.assert_close(found.double(), exact, rtol=1e-2, atol=1e-2)


def test_a_gradient_that_is_not_wanted(library: Library) -> None:
    q, k, v, grad = inputs()
    out, lse, *wanted = (x.half() if x.dim() == 4 else x.float() for x in expected([q, k, v, grad], PLAIN))
    grad_v = torch.full_like(v, torch.nan)
    rest = (None, out, lse, 0.0, SCALE, False, -1, -1)
    library.kernels("diopiFlashAttentionBackward", None, None, grad_v, grad, None, q, k, v, *rest)
    torch.testing.assert_close(grad_v, wanted[2], rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("tokens,held", [(QUERIES, QUERIES), (3, QUERIES)])
def test_a_cache_with_rows_that_hold_nothing_yet(library: Library, tokens: int, held: int) -> None:
    channels, weight = HEADS * CHANNELS, drawn(HEADS * CHANNELS, 3 * HEADS * CHANNELS)
    sizes = [1, HEADS, HEADS, CHANNELS]

    def attended(rows: int) -> torch.Tensor:
        x = drawn(2 * tokens, channels)
        caches = [torch.full((1, 2, HEADS, rows, CHANNELS), torch.nan, dtype=torch.half) for _ in "kv"]
        for cache in caches:
            cache[:, :, :, :held] = drawn(1, 2, HEADS, held, CHANNELS)
        size = ctypes.pointer(ctypes.c_int64(0))
        room = (None, size, False, None, size, 0)
        library.kernels(
            "diopiFusedContextAttentionInp",
            x,
            weight / 8,
            None,
            *room,
            *caches,
            0,
            *sizes[1:],
            rows,
            tokens,
            held,
            0,
            1e4,
        )
        return x

    before = library.calls()
    full, spare = attended(held), attended(held + 4)
    assert library.calls()[0] == before[0] + 2
    assert full.isfinite().all() and torch.equal(full, spare)


DROPPED = 0.25


def unit_rows() -> list[torch.Tensor]:
    """Queries of zeros, so that all weights are alike, and values of which each key has a channel of its own."""
    values = torch.zeros(2, KEYS, SHARED, CHANNELS, dtype=torch.half)
    for key in range(KEYS):
        values[:, key, :, key] = 1
    return [drawn(2, QUERIES, HEADS, CHANNELS) * 0, drawn(2, KEYS, SHARED, CHANNELS), values]


def dropped_attention(library: Library, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, generator: Any) -> Any:
    """Which weights were kept, as the forward step and as the gradient of the values tell; the result beside them."""
    out, lse = torch.full_like(q, torch.nan), torch.full((2, HEADS, QUERIES), torch.nan)
    library.kernels("diopiFlashAttention", out, lse, generator, q, k, v, None, DROPPED, SCALE, False, -1, -1)
    seen = (out[..., :KEYS] > 0).permute(0, 2, 1, 3)  # (sequence, head, query, key)
    told = torch.zeros_like(seen)
    for head in range(HEADS):
        for query in range(QUERIES):
            grad = torch.zeros_like(out)
            grad[:, query, head, 0] = 1
            grads = [torch.full_like(x, torch.nan) for x in (q, k, v)]
            rest = (None, out, lse, DROPPED, SCALE, False, -1, -1)
            library.kernels("diopiFlashAttentionBackward", *grads, grad, generator, q, k, v, *rest)
            told[:, head, query] = grads[2][:, :, head // (HEADS // SHARED), 0] > 0
    return seen, told, out


@pytest.mark.parametrize(
    ("lacks", "calls"),
    [({}, (1, HEADS * QUERIES)), ({"backward": True}, (0, 0)), ({"gaps": True}, (1, HEADS * QUERIES))],
    ids=["all", "backward", "gaps"],
)
def test_both_steps_drop_the_same(library: Library, lacks: dict[str, bool], calls: tuple[int, int]) -> None:
    """Where the library has only one of them, it is not asked for the other; where rows lie changes nothing."""
    q, k, v = unit_rows()
    spread = torch.zeros(2, QUERIES, 2 * HEADS, CHANNELS, dtype=torch.half)[:, :, :HEADS]
    generator = library.kernels.generator(3)
    before = library.calls()
    with library.lacking(**lacks):
        seen, told, out = dropped_attention(library, spread.copy_(q), k, v, generator)
    after = library.calls()
    assert (after[0] - before[0], after[1] - before[1]) == calls
    assert torch.equal(seen, told)
    assert 0.6 < seen.double().mean() < 0.9
    torch.testing.assert_close(
        out[out > 0].double().unique(), torch.tensor([1 / KEYS / (1 - DROPPED)]).double(), rtol=1e-3, atol=0
    )
    again = dropped_attention(library, q, k, v, generator)[0]
    assert not torch.equal(seen, again)


def test_gradients_of_dropout(library: Library) -> None:
    q, k, v, grad = inputs()
    generator = library.kernels.generator(8)
    with torch.no_grad():
        kept = dropped_attention(library, *unit_rows(), generator)[0].double() / (1 - DROPPED)
    generator = library.kernels.generator(8)
    out, lse = torch.empty_like(q), torch.empty(2, HEADS, QUERIES)
    library.kernels("diopiFlashAttention", out, lse, generator, q, k, v, None, DROPPED, SCALE, False, -1, -1)
    grads = [torch.full_like(x, torch.nan) for x in (q, k, v)]
    rest = (None, out, lse, DROPPED, SCALE, False, -1, -1)
    library.kernels("diopiFlashAttentionBackward", *grads, grad, generator, q, k, v, *rest)
    exact = [x.double().requires_grad_() for x in (q, k, v)]
    wide_k, wide_v = (x.repeat_interleave(HEADS // SHARED, 2) for x in exact[1:])
    weights = (torch.einsum("bihd,bjhd->bhij", exact[0], wide_k) * SCALE).softmax(-1) * kept
    wanted = torch.einsum("bhij,bjhd->bihd", weights, wide_v)
    for found, right in zip((out, *grads), (wanted, *torch.autograd.grad(wanted, exact, grad.double())), strict=True):
        torch.testing.assert_close(found.double(), right.detach(), rtol=1e-2, atol=1e-2)


def test_no_library_draws_for_who_asks_what_was_dropped(library: Library) -> None:
    q, k, v = unit_rows()
    out, lse, kept = torch.empty_like(q), torch.empty(2, HEADS, QUERIES), torch.empty(2, HEADS, QUERIES, KEYS).bool()
    before = library.calls()
    generator = library.kernels.generator(4)
    wide = [x.repeat_interleave(HEADS // x.shape[2], 2) for x in (q, k, v)]
    library.kernels("diopiMultiHeadAttention", *wide, DROPPED, False, True, SCALE, out, lse, generator, kept)
    assert library.calls() == before
    assert torch.equal(kept, (out[..., :KEYS] > 0).permute(0, 2, 1, 3))

"""A language model's steps with a static cache: caches change in place, and attention over them is a few loops."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from dicp.operators import Table
from dicp.program import Kernel
from dicp.target import Target

LAYERS, HEADS, LENGTH, WIDTH = 2, 3, 12, 8
Function = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip(Target):
    """The built vendor as one that wants row products in loops."""

    @property
    def table(self) -> Table:
        return replace(Target.table.fget(self), separate_elements=("bmm",))  # type: ignore[attr-defined]


@pytest.fixture
def for_chip(torch: Any, compiler: Any) -> Function:
    """torch.compile for such a chip."""
    from dicp.backend import backend, vendor_target

    fields = {name: getattr(vendor_target(), name) for name in Target.__slots__}
    chip = backend("chip", lambda: Chip(**fields))
    return lambda function: torch.compile(function, backend=chip, fullgraph=True, dynamic=False)


def by_index(torch: Any, cache: Any, at: Any, new: Any) -> Any:
    """Two layers of a stack, each read once it has changed."""
    for layer in cache:
        layer.index_copy_(1, at, new)
        new = new + layer.sum(1, keepdim=True)
    return new


def by_slice(torch: Any, cache: Any, at: Any, new: Any) -> Any:
    cache[1, :, 3:4] = new
    cache[-1, :, -2:] = 2 * new
    return cache[1].sum(1)


def by_steps(torch: Any, cache: Any, at: Any, new: Any) -> Any:
    cache[:, :, 1:9:3] = new
    return cache[0] + 1


def of_one_layer(torch: Any, cache: Any, at: Any, new: Any) -> Any:
    cache[0] = new
    return cache.sum(2)


def kept_before(torch: Any, cache: Any, at: Any, new: Any) -> Any:
    """The old contents are needed once the cache has changed."""
    old = cache.clone()
    cache[0].index_copy_(1, at, new)
    return old + cache


def returned_as_it_was(torch: Any, cache: Any, at: Any, new: Any) -> Any:
    old = cache * 1
    cache[1].index_copy_(1, at, new)
    cache.mul_(2)
    return old


def a_copy_of_it(torch: Any, cache: Any, at: Any, new: Any) -> Any:
    """Nothing changes: the result is another tensor."""
    return cache[0].index_copy(1, at, new), cache.select_scatter(new.expand(HEADS, LENGTH, WIDTH), 0, 1)


UPDATES = {
    f.__name__: f for f in (by_index, by_slice, by_steps, of_one_layer, kept_before, returned_as_it_was, a_copy_of_it)
}


@pytest.mark.parametrize("name", UPDATES)
def test_updates(torch: Any, compiled: Function, name: str) -> None:
    given = [torch.randn(LAYERS, HEADS, LENGTH, WIDTH), torch.tensor([5]), torch.randn(HEADS, 1, WIDTH)]
    expected, found = [x.clone() for x in given], [x.to("dipu") for x in given]
    run = compiled(lambda *args: UPDATES[name](torch, *args))
    for _ in range(2):
        result = UPDATES[name](torch, *expected)
        torch.testing.assert_close(torch.utils._pytree.tree_map(lambda x: x.cpu(), run(*found)), result)
        torch.testing.assert_close([x.cpu() for x in found], expected, rtol=0, atol=1e-6)


def test_slices_whose_places_are_symbols(torch: Any, compiled: Function, reports: Any) -> None:
    def written(cache: Any, new: Any) -> Any:
        cache[:, 1 : 1 + len(new)] = new.t()
        cache[len(new) - 1] = 7
        return cache.slice_scatter(new.t() * 2, 1, 0, len(new))

    run = compiled(written, dynamic=True)
    for length in (3, 4, 5):
        cache, new = torch.randn(6, 9), torch.randn(length, 6)
        there = cache.to("dipu")
        torch.testing.assert_close(run(there, new.to("dipu")).cpu(), written(cache, new))
        torch.testing.assert_close(there.cpu(), cache)
    assert len(reports()) == 1 and not reports()[0].islands


@pytest.mark.parametrize("value", [3, 2.5, None])
def test_what_is_filled_is_a_loop(torch: Any, compiled: Function, reports: Any, value: float | None) -> None:
    def filled(x: Any) -> Any:
        return x.clone().fill_(x[0, 0] if value is None else value) * x

    x = torch.randn(6, 9)
    torch.testing.assert_close(compiled(filled)(x.to("dipu")).cpu(), filled(x))
    assert len(reports()) == 1 and not reports()[0].islands


@pytest.mark.parametrize("name", ["by_index", "by_slice"])
def test_only_what_is_new_is_written(torch: Any, compiled: Function, reports: Any, name: str) -> None:
    run = compiled(lambda *args: UPDATES[name](torch, *args))
    run(
        *(
            x.to("dipu")
            for x in (torch.randn(LAYERS, HEADS, LENGTH, WIDTH), torch.tensor([5]), torch.randn(HEADS, 1, WIDTH))
        )
    )
    (report,) = reports()
    assert not report.islands
    whole = HEADS * LENGTH * WIDTH
    for instruction in report.program.instructions:
        if isinstance(instruction, Kernel):
            for view in instruction.writes:
                assert torch.Size(view.sizes).numel() < whole or 0 in view.strides, report.text()


def attended(torch: Any, query: Any, keys: Any, values: Any, mask: Any) -> Any:
    return torch.nn.functional.scaled_dot_product_attention(query, keys, values, attn_mask=mask)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("seen", [0, 1, 7, LENGTH])
def test_attention_of_one_token(torch: Any, for_chip: Function, reports: Any, kind: str, seen: int) -> None:
    """Of halves it is three loops; a token that sees no other gives zeros."""
    dtype = getattr(torch, kind)
    query = torch.randn(2, HEADS, 1, WIDTH, dtype=dtype)
    keys, values = (torch.randn(2, HEADS, LENGTH, WIDTH, dtype=dtype) for _ in range(2))
    mask = (torch.arange(LENGTH) < seen).view(1, 1, 1, LENGTH)
    expected = attended(torch, *(x.double() for x in (query, keys, values)), mask)
    run = for_chip(lambda *args: attended(torch, *args))
    found = run(*(x.to("dipu") for x in (query, keys, values, mask)))
    assert found.dtype == dtype
    allowed = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 1e-5}[kind]
    torch.testing.assert_close(found.cpu().double(), expected, rtol=allowed, atol=allowed)
    (report,) = reports()
    assert not report.islands
    calls = [i for i in report.program.instructions if not isinstance(i, Kernel)]
    assert len(calls) == (2 if kind == "float32" else 0), report.text()


def test_rows_of_a_product(torch: Any, for_chip: Function, reports: Any) -> None:
    """The product of several rows, and of a matrix that others read as float32, stay functions of the library."""

    def products(row: Any, rows: Any, halves: Any) -> Any:
        wide = halves.float()
        return torch.bmm(row, halves.float() * 2), torch.bmm(rows, halves.float()), torch.bmm(row, wide), wide + 1

    row, rows = torch.randn(2, 1, 5), torch.randn(2, 3, 5)
    halves = torch.randn(2, 5, 6).half()
    found = for_chip(products)(*(x.to("dipu") for x in (row, rows, halves)))
    expected = [
        row.double() @ halves.double() * 2,
        rows.double() @ halves.double(),
        row.double() @ halves.double(),
        halves.double() + 1,
    ]
    for mine, other in zip(found, expected, strict=True):
        torch.testing.assert_close(mine.cpu().double(), other, rtol=1e-5, atol=1e-5)
    (report,) = reports()
    assert sum(not isinstance(i, Kernel) for i in report.program.instructions) == 3, report.text()


INDICES: dict[str, Function] = {
    "from the end": lambda x, i: x[:, i - 3],
    "several dimensions": lambda x, i: x[i.view(2, 2)],
    "one": lambda x, i: x[i[1]],
    "of 32 bits": lambda x, i: x[:, :, i.int()],
    "two": lambda x, i: x[i, i - 1],
    "of the host": lambda x, i: x[i.cpu()],
    "a mask": lambda x, i: x[:, i > 0].sum(1),
}


@pytest.mark.parametrize("name", INDICES)
def test_indices(torch: Any, compiled: Function, name: str) -> None:
    x, i = torch.randn(4, 5, 6), torch.tensor([0, 3, 2, 0])
    if name == "a mask":
        i = torch.tensor([0, 3, 2, 0, 1])
    run = compiled(INDICES[name], fullgraph=False)
    torch.testing.assert_close(run(x.to("dipu"), i.to("dipu")).cpu(), INDICES[name](x, i))

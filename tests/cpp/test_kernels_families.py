"""Indexing, shape and sort kernels against torch, over dtypes, layouts and degenerate shapes."""

import ctypes
import itertools
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).parent / "kernels"))
from families import HALVES, Families, blank, close, indices, layouts, numbers

from portable import DEEP_TEAMS, DTYPE_NOT_SUPPORTED, ERROR, FLAGS, build

FLOATS = (torch.float32, torch.float64, *HALVES)
MOVED = (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int16, torch.uint8, torch.bool)
FAMILIES = (
    "embedding",
    "index_select",
    "gather",
    "index",
    "masked",
    "slice",
    "join",
    "shape",
    "sort",
    "unique",
    "rotary_embedding",
)


@pytest.fixture(scope="module", params=[FLAGS, DEEP_TEAMS], ids=["alone", "teams"])
def kernels(request: pytest.FixtureRequest) -> Families:
    return Families(build(FAMILIES, request.param))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("index_dtype", [torch.int64, torch.int32])
@pytest.mark.parametrize("shape", [(), (6,), (2, 3), (0,), (2, 0, 3)])
def test_embedding_and_its_gradient(
    kernels: Families, dtype: torch.dtype, index_dtype: torch.dtype, shape: tuple[int, ...]
) -> None:
    weight, index = numbers((5, 4), dtype), indices(shape, 5, index_dtype)
    expected = F.embedding(index, weight)
    for w, i, layout in itertools.product(layouts(weight), layouts(index), range(3)):
        out = blank(expected, layout)
        kernels("diopiEmbedding", out, w, i, -1, False, False)
        close(out, expected)
    grad = numbers(tuple(expected.shape), dtype, 1)
    for padding_idx, by_frequency in itertools.product((-1, 2), (False, True)):
        reference = torch.ops.aten.embedding_dense_backward(
            grad.float() if dtype in HALVES else grad, index, 5, padding_idx, by_frequency
        )
        for g, i, layout in itertools.product(layouts(grad), layouts(index), range(3)):
            out = blank(weight, layout)
            kernels("diopiEmbeddingBackward", out, g, i, 5, padding_idx, by_frequency, False)
            close(out, reference, 2)


def test_indices_out_of_range_are_named(kernels: Families) -> None:
    weight, out = numbers((5, 4)), torch.empty(2, 4)
    assert kernels.status("diopiEmbedding", out, weight, torch.tensor([1, 7]), -1, False, False) == ERROR
    assert kernels.last_error() == "index 7 is out of bounds for dimension 0 with size 5"
    assert kernels.status("diopiEmbedding", out, weight, torch.tensor([-1, 1]), -1, False, False) == ERROR
    assert kernels.status("diopiIndexSelect", out, weight, 0, torch.tensor([5, 1])) == ERROR
    assert kernels.status("diopiGather", torch.empty(1, 4), weight, 0, torch.tensor([[0, 1, 2, 5]])) == ERROR
    assert kernels.status("diopiIndexPutInp", weight, torch.zeros(1), [torch.tensor([-6])], 1, False) == ERROR
    assert kernels.last_error() == "index -6 is out of bounds for dimension 0 with size 5"
    floats = torch.tensor([1.0, 2.0])
    assert kernels.status("diopiIndexSelect", out, weight, 0, floats) == DTYPE_NOT_SUPPORTED


@pytest.mark.parametrize("dtype", MOVED)
@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_index_select_and_fill(kernels: Families, dtype: torch.dtype, dim: int) -> None:
    base = numbers((3, 4, 5), dtype)
    index = indices((6,), base.shape[dim])
    expected = base.index_select(dim, index)
    filled = base.index_fill(dim, index[:2], 1)
    for x, i, layout in itertools.product(layouts(base), layouts(index), range(3)):
        out = blank(expected, layout)
        kernels("diopiIndexSelect", out, x, dim, i)
        assert torch.equal(out, expected)
        for value in (torch.ones((), dtype=dtype), torch.ones(1, dtype=torch.float32)):
            out = blank(base, layout)
            kernels("diopiIndexFill", out, x, dim, i[:2], value)
            assert torch.equal(out, filled)
        inplace = blank(base, layout).copy_(base)
        kernels("diopiIndexFillInp", inplace, dim, i[:2], torch.ones((), dtype=dtype))
        assert torch.equal(inplace, filled)
        inplace = blank(base, layout).copy_(base)
        kernels("diopiIndexFillInpScalar", inplace, dim, i[:2] - base.shape[dim], 1)
        assert torch.equal(inplace, filled)
        kernels("diopiIndexFillScalar", out, x, dim, i[:2], 1)
        assert torch.equal(out, filled)


def test_index_select_of_a_scalar_and_of_nothing(kernels: Families) -> None:
    out = torch.empty(())
    kernels("diopiIndexSelect", out, torch.tensor(3.0), 0, torch.tensor(0))
    assert out == 3
    kernels("diopiIndexSelect", torch.empty(0, 4), numbers((3, 4)), 0, torch.empty(0, dtype=torch.int64))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("count", [9, 130])
def test_index_select_gradient_adds_repeated_positions(
    kernels: Families, dtype: torch.dtype, dim: int, count: int
) -> None:
    base = numbers((3, 4, 5), dtype)
    index = indices((count,), base.shape[dim])
    grad = base.index_select(dim, index)
    expected = torch.zeros(base.shape, dtype=torch.float64).index_add(dim, index, grad.double())
    for g, layout in itertools.product(layouts(grad), range(3)):
        out = blank(base, layout)
        kernels("diopiIndexSelectBackward", out, g, base.shape, dim, index)
        close(out, expected)


@pytest.mark.parametrize("dtype", MOVED)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_gather_and_scatter(kernels: Families, dtype: torch.dtype, dim: int) -> None:
    base, src = numbers((4, 5, 6), dtype), numbers((4, 5, 6), dtype, 1)
    index = torch.stack([torch.randperm(base.shape[dim])[:2] for _ in range(9)]).view(3, 3, 2).movedim(-1, dim)
    gathered, scattered = base.gather(dim, index), base.scatter(dim, index, src)
    constant = base.scatter(dim, index, 1)
    for x, s, i, layout in itertools.product(layouts(base), layouts(src), layouts(index), range(3)):
        out = blank(gathered, layout)
        kernels("diopiGather", out, x, dim, i)
        assert torch.equal(out, gathered)
        out = blank(base, layout)
        kernels("diopiScatter", out, x, dim, s, i.int(), b"")
        assert torch.equal(out, scattered)
        out.copy_(base)
        kernels("diopiScatterInp", out, dim, s, i, None)
        assert torch.equal(out, scattered)
        kernels("diopiScatterScalar", out, x, dim, 1, i, b"")
        assert torch.equal(out, constant)
        out.copy_(base)
        kernels("diopiScatterInpScalar", out, dim, 1, i, b"")
        assert torch.equal(out, constant)


@pytest.mark.filterwarnings("ignore:The reduce argument of torch.scatter")
@pytest.mark.parametrize("dtype", [*FLOATS, torch.int32, torch.bool])
@pytest.mark.parametrize("reduce", ["add", "multiply"])
def test_scatter_reduces_colliding_places(kernels: Families, dtype: torch.dtype, reduce: str) -> None:
    base, src, index = numbers((3, 5), dtype), numbers((6, 5), dtype, 1), indices((6, 4), 3)
    wide = torch.float64 if dtype.is_floating_point else dtype
    expected = base.to(wide).scatter(0, index, src.to(wide), reduce=reduce)
    twos = base.to(wide).scatter(0, index, 2, reduce=reduce)
    for x, s, layout in itertools.product(layouts(base), layouts(src), range(3)):
        out = blank(base, layout)
        kernels("diopiScatter", out, x, 0, s, index, reduce.encode())
        close(out, expected, 2)
        kernels("diopiScatterScalar", out, x, 0, 2, index, reduce.encode())
        close(out, twos, 2)
    assert kernels.status("diopiScatter", out, x, 0, s, index, b"mean") == ERROR


@pytest.mark.parametrize("dtype", FLOATS)
def test_gather_gradient(kernels: Families, dtype: torch.dtype) -> None:
    base, index = numbers((3, 5), dtype), indices((3, 9), 5)
    grad = numbers((3, 9), dtype, 1)
    expected = torch.zeros(3, 5, dtype=torch.float64).scatter_add(1, index, grad.double())
    for g, layout in itertools.product(layouts(grad), range(3)):
        out = blank(base, layout)
        kernels("diopiGatherBackward", out, g, base, 1, index)
        close(out, expected)


def selections(shape: tuple[int, ...]) -> list[list[torch.Tensor | None]]:
    a, b, c = shape
    mask = numbers((a, b), torch.bool)
    return [
        [indices((4,), a)],
        [None, indices((2, 3), b)],
        [indices((4,), a), indices((3, 1), b, torch.int32) - b],
        [indices((4,), a), None, indices((4,), c)],
        [None, indices((2, 1), b), indices((3,), c)],
        [indices((), a), None, indices((), c)],
        [mask],
        [None, numbers((b, c), torch.bool)],
        [numbers((a,), torch.bool), None, indices((1,), c)],
        [numbers((a, b, c), torch.bool)],
        [torch.zeros(a, dtype=torch.bool)],
        [torch.empty(0, dtype=torch.int64)],
    ]


@pytest.mark.parametrize("dtype", MOVED)
@pytest.mark.parametrize("number", range(len(selections((1, 1, 1)))))
def test_index_and_index_put(kernels: Families, dtype: torch.dtype, number: int) -> None:
    base = numbers((4, 5, 6), dtype)
    where = selections((4, 5, 6))[number]
    full = [i.long() if i is not None and i.dtype == torch.int32 else i for i in where]
    expected = torch.ops.aten.index(base, full)
    for x in layouts(base):
        assert torch.equal(kernels.allocated("diopiIndex", x, where, len(where)), expected)
    for values in (numbers(tuple(expected.shape), dtype, 1), torch.ones((), dtype=dtype)):
        target = torch.ops.aten.index_put(base, full, values)
        for x, v, layout in itertools.product(layouts(base), layouts(values), range(3)):
            out = blank(base, layout)
            kernels("diopiIndexPut", out, x, v, where, len(where), False)
            assert torch.equal(out, target)  # where places collide the last value stays
    if dtype.is_floating_point:
        values = numbers(tuple(expected.shape), dtype, 1)
        target = torch.ops.aten.index_put(base.double(), full, values.double(), True)
        for v, layout in itertools.product(layouts(values), range(3)):
            inplace = blank(base, layout).copy_(base)
            kernels("diopiIndexPutInp", inplace, v, where, len(where), True)
            close(inplace, target, 2)
            grad = blank(base, layout)
            kernels("diopiIndexBackward", grad, torch.zeros_like(base), where, len(where), v)
            close(
                grad,
                torch.ops.aten.index_put(torch.zeros_like(base).double(), full, values.double(), True),
                2,
            )


@pytest.mark.parametrize("dtype", MOVED)
def test_masks(kernels: Families, dtype: torch.dtype) -> None:
    base, other = numbers((3, 4, 5), dtype), numbers((4, 1), dtype, 1)
    for mask in (
        numbers((3, 4, 5), torch.bool, 2),
        numbers((5,), torch.bool, 2),
        torch.zeros(4, 1, dtype=torch.bool),
    ):
        for x, m, layout in itertools.product(layouts(base), layouts(mask), range(3)):
            out = blank(base, layout)
            kernels("diopiWhere", out, m, x, other)
            assert torch.equal(out, torch.where(mask, base, other))
            kernels("diopiWhere", out, m.byte(), other, x)
            assert torch.equal(out, torch.where(mask, other, base))
            kernels("diopiMaskedFillScalar", out, x, m, 1)
            assert torch.equal(out, base.masked_fill(mask, 1))
            kernels("diopiMaskedFill", out, x, m, torch.ones((), dtype=dtype))
            assert torch.equal(out, base.masked_fill(mask, 1))
            out.copy_(base)
            kernels("diopiMaskedFillInp", out, m, torch.ones(1, dtype=dtype))
            assert torch.equal(out, base.masked_fill(mask, 1))
            out.copy_(base)
            kernels("diopiMaskedFillInpScalar", out, m, 1.0)
            assert torch.equal(out, base.masked_fill(mask, 1))
            selected = base.masked_select(mask)
            assert torch.equal(kernels.allocated("diopiMaskedSelect", x, m), selected)
            source = numbers((60,), dtype, 3)
            kernels("diopiMaskedScatter", out, x, m, source)
            assert torch.equal(out, base.masked_scatter(mask, source))
            kernels("diopiMaskedSelectBackward", out, source[: selected.numel()], x, m)
            assert torch.equal(out, torch.zeros_like(base).masked_scatter(mask, source))


def test_where_converts_its_operands(kernels: Families) -> None:
    condition, out = torch.tensor([True, False]), torch.empty(2, dtype=torch.float64)
    kernels("diopiWhere", out, condition, torch.tensor(3), torch.tensor([1.5, 2.5]))
    assert out.tolist() == [3.0, 2.5]


@pytest.mark.parametrize("dtype", [*MOVED, torch.float16])
@pytest.mark.parametrize("shape", [(), (7,), (3, 4, 5), (0, 3), (9000,)])
def test_nonzero(kernels: Families, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    base = numbers(shape, dtype) * numbers(shape, torch.bool, 1)
    for x in layouts(base):
        assert torch.equal(kernels.allocated("diopiNonzero", x), base.nonzero())


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (0,)])
def test_one_hot(kernels: Families, shape: tuple[int, ...]) -> None:
    index = indices(shape, 5)
    expected = F.one_hot(index, 5)
    for i, layout in itertools.product(layouts(index), range(3)):
        out = blank(expected, layout)
        kernels("diopiOneHot", out, i, 5)
        assert torch.equal(out, expected)


@pytest.mark.parametrize("dtype", MOVED)
@pytest.mark.parametrize(("start", "end", "step"), [(0, 4, 1), (1, 100, 2), (-3, -1, 1), (3, 1, 1), (-100, 2, 3)])
def test_slices(kernels: Families, dtype: torch.dtype, start: int, end: int, step: int) -> None:
    base = numbers((3, 7, 4), dtype)
    expected = torch.ops.aten.slice(base, 1, start, end, step)
    src = numbers(tuple(expected.shape), dtype, 1)
    for x, s, layout in itertools.product(layouts(base), layouts(src), range(3)):
        out = blank(expected, layout)
        kernels("diopiSlice", out, x, 1, start, end, step)
        assert torch.equal(out, expected)
        out = blank(base, layout)
        kernels("diopiSliceScatter", out, x, s, -2, start, end, step)
        assert torch.equal(out, base.slice_scatter(src, 1, start, end, step))
        kernels("diopiSliceBackward", out, s, base.shape, 1, start, end, step)
        assert torch.equal(out, torch.zeros_like(base).slice_scatter(src, 1, start, end, step))


@pytest.mark.parametrize(("dim", "position"), [(0, 2), (1, -1), (-1, 0)])
def test_selects(kernels: Families, dim: int, position: int) -> None:
    base = numbers((3, 7, 4))
    expected = base.select(dim, position)
    src = numbers(tuple(expected.shape), seed=1)
    for x, s, layout in itertools.product(layouts(base), layouts(src), range(3)):
        out = blank(expected, layout)
        kernels("diopiSelect", out, x, dim, position)
        assert torch.equal(out, expected)
        out = blank(base, layout)
        kernels("diopiSelectScatter", out, x, s, dim, position)
        assert torch.equal(out, base.select_scatter(src, dim, position))
        kernels("diopiSelectBackward", out, s, base.shape, dim, position)
        assert torch.equal(out, torch.zeros_like(base).select_scatter(src, dim, position))
    assert kernels.status("diopiSelect", expected.clone(), base, dim, 9) == ERROR


@pytest.mark.parametrize("dtype", MOVED)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_joins(kernels: Families, dtype: torch.dtype, dim: int) -> None:
    base = numbers((6, 6, 6), dtype)
    sizes = [2, 0, 3, 1]
    for x, layout in itertools.product(layouts(base), range(3)):
        parts = list(x.split(sizes, dim))
        out = blank(base, layout)
        kernels("diopiCat", out, [*parts, torch.empty(0, dtype=dtype)], len(parts) + 1, dim)
        assert torch.equal(out, base)
        results = [blank(part, layout) for part in parts]
        kernels("diopiSplitWithSizes", results, len(results), x, sizes, dim)
        assert all(torch.equal(result, part) for result, part in zip(results, parts, strict=True))
        stacked = torch.stack([base, base.flip(0)], dim)
        out = blank(stacked, layout)
        kernels("diopiStack", out, [x, base.flip(0)], 2, dim)
        assert torch.equal(out, stacked)
    assert kernels.status("diopiCat", blank(base), parts[:2], 2, dim) == ERROR


def test_cat_converts_to_the_dtype_of_its_result(kernels: Families) -> None:
    out = torch.empty(4, dtype=torch.float64)
    kernels("diopiCat", out, [torch.tensor([1, 2]), torch.tensor([0.5, 1.5])], 2, 0)
    assert out.tolist() == [1.0, 2.0, 0.5, 1.5]


@pytest.mark.parametrize("dtype", MOVED)
def test_repeat_flip_and_roll(kernels: Families, dtype: torch.dtype) -> None:
    base = numbers((2, 3, 4), dtype)
    for x, layout in itertools.product(layouts(base), range(3)):
        for counts in ((2, 1, 3), (1, 1, 1), (3, 2, 2, 1), (2, 0, 1)):
            expected = base.repeat(counts)
            out = blank(expected, layout)
            kernels("diopiRepeat", out, x, counts)
            assert torch.equal(out, expected)
        for dims in ((0,), (1, -1), (0, 1, 2), ()):
            out = blank(base, layout)
            kernels("diopiFlip", out, x, dims)
            assert torch.equal(out, base.flip(dims))
        for shifts, dims in (
            ((1,), (0,)),
            ((-1, 5), (1, 2)),
            ((0,), (1,)),
            ((2, 1), (1, 1)),
            ((5,), ()),
            ((-7,), ()),
        ):
            out = blank(base, layout)
            kernels("diopiRoll", out, x, shifts, dims)
            assert torch.equal(out, base.roll(shifts, dims))


@pytest.mark.parametrize("dtype", MOVED)
@pytest.mark.parametrize("diagonal", [-9, -1, 0, 2, 9])
def test_triangles(kernels: Families, dtype: torch.dtype, diagonal: int) -> None:
    base = numbers((2, 4, 5), dtype)
    for x, layout in itertools.product(layouts(base), range(3)):
        out = blank(base, layout)
        kernels("diopiTril", out, x, diagonal)
        assert torch.equal(out, base.tril(diagonal))
        kernels("diopiTriu", out, x, diagonal)
        assert torch.equal(out, base.triu(diagonal))
        out.copy_(base)
        kernels("diopiTriuInp", out, diagonal)
        assert torch.equal(out, base.triu(diagonal))


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.int32, torch.uint8])
def test_ranges(kernels: Families, dtype: torch.dtype) -> None:
    for start, end, step in ((0, 7, 1), (3, 40, 5), (2, 2, 1)):
        expected = torch.arange(start, end, step, dtype=torch.float64)
        for layout in range(3):
            out = blank(expected.to(dtype), layout)
            kernels("diopiArange", out, start, end, step)
            close(out, expected)
    for start, end, steps in ((0.0, 1.0, 5), (3, 100, 8), (2.5, 9.0, 1), (0.0, 1.0, 0)):
        expected = torch.linspace(start, end, steps, dtype=torch.float64)
        out = torch.empty(steps, dtype=dtype)
        kernels("diopiLinspace", out, start, end, steps)
        close(out, expected.trunc() if not dtype.is_floating_point else expected)


def test_arange_of_fractions_and_large_integers(kernels: Families) -> None:
    out = torch.empty(8)
    kernels("diopiArange", out, 0.5, -3.5, -0.5)
    close(out, torch.arange(0.5, -3.5, -0.5))
    large = torch.empty(3, dtype=torch.int64)
    kernels("diopiArange", large, 2**60 + 1, 2**60 + 4, 1)
    assert large.tolist() == [2**60 + 1, 2**60 + 2, 2**60 + 3]


@pytest.mark.parametrize("dtype", MOVED)
@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("pad", [(1, 2), (2, 0, 1, 3), (-1, 2, 0, -2)])
def test_pad(kernels: Families, dtype: torch.dtype, mode: str, pad: tuple[int, ...]) -> None:
    base = numbers((2, 3, 4, 5), dtype)
    if mode != "constant" and (min(pad) < 0 or dtype not in (torch.float32, torch.float64)):
        pytest.skip("torch pads these by a constant only")
    whole = pad if mode == "constant" or len(pad) == 4 else (*pad, 0, 0)
    expected = F.pad(base, whole, mode, 1 if mode == "constant" else None)
    for x, layout in itertools.product(layouts(base), range(3)):
        out = blank(expected, layout)
        kernels("diopiPad", out, x, pad, mode.encode(), ctypes.byref(ctypes.c_double(1)))
        assert torch.equal(out, expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("dim", "size", "step"), [(0, 2, 1), (1, 3, 2), (-1, 2, 3), (1, 5, 1), (1, 0, 1)])
def test_unfold_and_its_gradient(kernels: Families, dtype: torch.dtype, dim: int, size: int, step: int) -> None:
    base = numbers((3, 5, 6), dtype)
    leaf = base.double().requires_grad_()
    expected = leaf.unfold(dim, size, step)
    grad = numbers(tuple(expected.shape), dtype, 1)
    expected.backward(grad.double())
    for x, layout in itertools.product(layouts(base), range(3)):
        out = blank(expected.detach().to(dtype), layout)
        kernels("diopiUnfold", out, x, dim, size, step)
        close(out, expected.detach())
    for g, layout in itertools.product(layouts(grad), range(3)):
        out = blank(base, layout)
        kernels("diopiUnfoldBackward", out, g, base.shape, dim, size, step)
        close(out, leaf.grad)


@pytest.mark.parametrize("dtype", [*MOVED, torch.float16])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(
    ("shape", "dim"), [((), 0), ((1000,), 0), ((3, 50, 4), 1), ((3, 50, 4), -1), ((17, 2), 0), ((0, 3), 1)]
)
def test_sort_is_stable(
    kernels: Families, dtype: torch.dtype, descending: bool, shape: tuple[int, ...], dim: int
) -> None:
    base = numbers(shape, dtype)
    if dtype.is_floating_point and base.numel() > 20:
        base.view(-1)[3::17] = torch.nan
        base.view(-1)[4::19] = torch.inf
    values, places = base.sort(dim=dim, descending=descending, stable=True)
    for x, layout in itertools.product(layouts(base), range(3)):
        out, index = blank(values, layout), blank(places, layout)
        kernels("diopiSort", out, index, x, dim, descending, None)
        close(out, values)
        assert torch.equal(index, places)
        index = blank(places, layout)
        kernels("diopiArgsort", index, x, True, dim, descending)
        assert torch.equal(index, places)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.uint8])
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize(
    ("shape", "dim", "k"),
    [
        ((500,), 0, 3),
        ((2, 2500), 1, 5),
        ((4, 60, 3), 1, 7),
        ((4, 60, 3), 1, 60),
        ((40, 5), -1, 0),
        ((), 0, 1),
        ((9,), 0, 5),
    ],
)
def test_topk(kernels: Families, dtype: torch.dtype, largest: bool, shape: tuple[int, ...], dim: int, k: int) -> None:
    base = numbers(shape, dtype)
    if dtype.is_floating_point and base.numel() > 20:
        base.view(-1)[3::170] = torch.nan
    expected, places = base.sort(dim=dim, descending=largest, stable=True)
    if shape:
        expected, places = expected.narrow(dim, 0, k), places.narrow(dim, 0, k)
    for x, layout in itertools.product(layouts(base), range(3)):
        out, index = blank(expected, layout), blank(places, layout)
        kernels("diopiTopk", out, index, x, k, dim, largest, True)
        close(out, expected)
        assert torch.equal(index, places)
    assert kernels.status("diopiTopk", out, index, base, 2501, dim, largest, True) == ERROR


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_sorted_places_may_be_32_bits_wide(kernels: Families, dtype: torch.dtype) -> None:
    base = numbers((4, 60, 3), dtype)
    expected, places = base.sort(dim=1, descending=True, stable=True)
    for layout in range(3):
        out, index = blank(expected, layout), blank(places.int(), layout)
        kernels("diopiSort", out, index, base, 1, True, None)
        assert torch.equal(out, expected) and torch.equal(index, places.int())
        index = blank(places.int(), layout)
        kernels("diopiArgsort", index, base, True, 1, True)
        assert torch.equal(index, places.int())
        for k in (3, 60):
            out, index = blank(expected[:, :k], layout), blank(places[:, :k].int(), layout)
            kernels("diopiTopk", out, index, base, k, 1, True, True)
            assert torch.equal(out, expected[:, :k]) and torch.equal(index, places[:, :k].int())
    assert kernels.status("diopiTopk", expected, places.float(), base, 60, 1, True, True) != 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool])
def test_unique(kernels: Families, dtype: torch.dtype) -> None:
    for base, dim in ((numbers((50, 60), dtype), None), (numbers((600, 2), dtype), 0)):
        expected, kinds = base.unique(return_inverse=True, dim=dim)
        inverse = torch.empty(kinds.shape, dtype=torch.int64)
        for x in layouts(base):
            out = kernels.allocated("diopiUnique", x, dim, True, False, inverse, None)
            assert torch.equal(out, expected) and torch.equal(inverse, kinds)


@pytest.mark.parametrize("dtype", FLOATS)
def test_sort_gradient(kernels: Families, dtype: torch.dtype) -> None:
    places = numbers((3, 6, 2)).argsort(dim=1)
    grad = numbers((3, 6, 2), dtype, 1)
    expected = torch.zeros_like(grad).scatter(1, places, grad)
    for g, layout in itertools.product(layouts(grad), range(3)):
        out = blank(grad, layout)
        kernels("diopiSortBackward", out, g, 1, places, grad.shape, True)
        assert torch.equal(out, expected)
    kernels("diopiSortBackward", out, grad[:, 0], 1, places[:, 0], grad.shape, False)
    assert torch.equal(out, torch.zeros_like(grad).scatter(1, places[:, :1], grad[:, :1]))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("conj", [False, True])
@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_embedding(kernels: Families, dtype: torch.dtype, conj: bool, interleaved: bool) -> None:
    x = numbers((2, 5, 3, 8), dtype)
    angle = torch.arange(5)[:, None, None] * torch.arange(1, 5) * 0.3
    cos, sin = angle.cos().to(dtype), angle.sin().to(dtype)
    wide = x.double()
    first, second = (wide[..., ::2], wide[..., 1::2]) if interleaved else wide.chunk(2, -1)
    turned = torch.complex(first, second) * torch.complex(cos.double(), sin.double() * (-1 if conj else 1))
    parts = (turned.real, turned.imag)
    expected = torch.stack(parts, -1).flatten(-2) if interleaved else torch.cat(parts, -1)
    for variant, layout in itertools.product(layouts(x), range(3)):
        out = blank(x, layout)
        kernels("diopiRotaryEmbedding", out, variant, cos, sin, conj, interleaved)
        close(out, expected, 2)
    kernels("diopiRotaryEmbedding", x, x, cos, sin, conj, interleaved)
    close(x, expected, 2)

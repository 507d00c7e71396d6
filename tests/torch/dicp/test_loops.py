"""Loops over other sizes visit the same elements, and views that are said to be apart have none in common."""

import itertools
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")

import sympy
import torch

from dicp.dims import apart
from dicp.loops import common, reshaped, turned
from dicp.program import Kernel, Root, RootKind, Step, View

SIZES = st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=4)
STRIDES = st.lists(st.integers(0, 12), min_size=4, max_size=4)


def view(sizes: Any, strides: Any, offset: int = 0, root: Root | None = None) -> View:
    of = root or Root(kind=RootKind.ARENA)
    return View(root=of, dtype=torch.float32, sizes=tuple(sizes), strides=tuple(strides), offset=offset)


def elements(of: View) -> list[int]:
    """The places that the view visits, in order."""
    places = itertools.product(*(range(int(size)) for size in of.sizes))
    return [int(of.offset) + sum(i * int(s) for i, s in zip(place, of.strides, strict=True)) for place in places]


def kernel(source: View) -> Kernel:
    step = Step(
        kernel="copy", operands=(source,), compute=torch.float32, dtype=torch.float32, rounds=False, name="copy"
    )
    return Kernel(sizes=source.sizes, results=[(view(source.sizes, source.strides), step)])


@given(one=SIZES, other=SIZES, strides=STRIDES)
def test_what_two_loops_are_split_into_visits_the_same_elements(
    one: list[int], other: list[int], strides: list[int]
) -> None:
    sizes = common(one, other)
    if sizes is None:
        return
    assert math.prod(int(size) for size in sizes) == math.prod(one) == math.prod(other)
    for loop in (one, other):
        source = view(loop, strides[: len(loop)])
        found = reshaped(kernel(source), sizes)
        assert found is not None and found.sizes == sizes
        assert elements(found.reads[0]) == elements(source)


@given(sizes=SIZES, strides=STRIDES, order=st.randoms())
def test_a_turned_loop_visits_the_elements_in_the_order_of_another(
    sizes: list[int], strides: list[int], order: Any
) -> None:
    own = view(sizes, strides[: len(sizes)])
    places = list(range(len(sizes)))
    order.shuffle(places)
    like = view([sizes[d] for d in places], [strides[d] for d in places], root=own.root)
    found = turned(kernel(own), own, like)
    assert found is not None
    assert found.sizes == like.sizes and elements(found.reads[0]) == elements(like)
    assert elements(found.writes[0]) == elements(found.reads[0])
    other = view([size + 1 for size in like.sizes], like.strides)
    assert turned(kernel(own), own, other) is None


def test_lengths_may_be_symbols() -> None:
    batch = sympy.Symbol("batch", integer=True, positive=True)
    assert common((6 * batch, 20), (30 * batch, 4)) == (6 * batch, 5, 4)
    assert common((batch, 4), (batch * 4,)) == (batch, 4)
    assert common((batch, 4), (7, 4)) is None
    assert common((batch * 3,), (4, batch)) is None


@settings(max_examples=500, deadline=None)
@given(sizes=SIZES, strides=STRIDES, offset=st.integers(-12, 12))
def test_views_that_are_apart_share_nothing(sizes: list[int], strides: list[int], offset: int) -> None:
    root = Root(kind=RootKind.ARENA)
    one = view(sizes, strides[: len(sizes)], 20, root)
    other = view(sizes, strides[: len(sizes)], 20 + offset, root)
    if apart(one, other):
        assert not set(elements(one)) & set(elements(other))


@pytest.mark.parametrize(
    ("sizes", "strides", "offset", "answer"),
    [
        ((4, 8), (16, 1), 8, True),  # halves of a last dimension
        ((4, 8), (16, 2), 1, True),  # neighbours
        ((4, 8), (8, 1), 32, True),  # one behind the other
        ((4, 8), (16, 1), 4, False),
        ((4, 8), (8, 1), 8, False),
        ((4, 8), (16, 1), 0, False),
        ((3, 3), (5, 7), 2, False),  # steps of 5 and 7 meet
    ],
)
def test_parts_of_concatenations_are_apart(
    sizes: tuple[int, ...], strides: tuple[int, ...], offset: int, answer: bool
) -> None:
    root = Root(kind=RootKind.ARENA)
    assert apart(view(sizes, strides, 0, root), view(sizes, strides, offset, root)) is answer
    assert apart(view(sizes, strides, offset, root), view(sizes, strides, 0, root)) is answer

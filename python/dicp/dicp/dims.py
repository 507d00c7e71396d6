"""Lengths, strides and offsets: numbers, or expressions over the symbols of a graph."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import sympy
import torch

from dicp.program import Dim, View


def dim(value: Any) -> Dim:
    """What a size of a traced tensor says, or a number that follows from sizes."""
    if isinstance(value, torch.SymInt | torch.SymFloat):
        value = value.node.expr
    if isinstance(value, sympy.Expr):
        return int(value) if value.is_Integer else value
    return int(value)


class Float32(sympy.Function):  # type: ignore[misc]
    """A fraction as float32 holds it."""

    is_real = True


def host_number(argument: int) -> sympy.Symbol:
    """The number that an argument is which lies on the host as a tensor without dimensions."""
    return sympy.Symbol(f"argument_{argument}", real=True)


def same(left: Dim, right: Dim) -> bool:
    """Equal whatever the symbols are."""
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    return left == right or _vanishes(left - right)


@cache
def _vanishes(difference: sympy.Expr) -> bool:
    return bool(sympy.expand(difference) == 0)


def all_same(left: Sequence[Dim], right: Sequence[Dim]) -> bool:
    return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))


def contiguous_strides(sizes: Sequence[Dim]) -> tuple[Dim, ...]:
    """Row-major."""
    strides: list[Dim] = []
    step: Dim = 1
    for size in reversed(sizes):
        strides.append(step)
        step = step * size
    return tuple(reversed(strides))


def expanded(view: View, sizes: Sequence[Dim]) -> View:
    """The view as an operand of a loop over `sizes`: what it broadcasts along has the stride 0."""
    missing = len(sizes) - len(view.sizes)
    strides: list[Dim] = [0] * missing
    for size, stride, wanted in zip(view.sizes, view.strides, sizes[missing:], strict=True):
        strides.append(0 if same(size, 1) and not same(wanted, 1) else stride)
    return View(root=view.root, dtype=view.dtype, sizes=tuple(sizes), strides=tuple(strides), offset=view.offset)


def same_access(left: View, right: View) -> bool:
    """Both are the same elements in the same order."""
    return left.root is right.root and same_places(left, right)


def same_places(left: View, right: View) -> bool:
    """Both are elements of one dtype that lie equally in their roots, in the same order."""
    return (
        left.dtype == right.dtype
        and same(left.offset, right.offset)
        and all_same(left.sizes, right.sizes)
        and all(same(a, b) or same(size, 1) for size, a, b in zip(left.sizes, left.strides, right.strides, strict=True))
    )


def _stretches(view: View) -> list[tuple[Any, Dim]]:
    """Strides with sizes, whatever the order of the dimensions and however they are split."""
    found: list[tuple[Any, Dim]] = []
    steps = zip(view.strides, view.sizes, strict=True)
    for stride, size in sorted((step for step in steps if not same(step[1], 1)), key=lambda step: step[0]):
        if found and same(stride, found[-1][0] * found[-1][1]):
            found[-1] = (found[-1][0], found[-1][1] * size)
        else:
            found.append((stride, size))
    return found


def apart(left: View, right: View) -> bool:
    """Two views of one root have no element in common, as parts of a concatenation; False where nobody knows."""
    if left.dtype.itemsize != right.dtype.itemsize:
        return False
    between = abs(left.offset - right.offset)
    if not isinstance(between, int) or not all(isinstance(stride, int) for stride in (*left.strides, *right.strides)):
        return False
    steps, others = _stretches(left), _stretches(right)
    if [stride for stride, _ in steps] != [stride for stride, _ in others]:
        return False
    if not all_same([size for _, size in steps], [size for _, size in others]):
        return False
    inner = [(stride, size) for stride, size in steps if stride <= between]
    outer = [stride for stride, _ in steps if stride > between]
    if not all(isinstance(size, int) for _, size in inner):
        return False
    reach = 1 + sum(stride * (size - 1) for stride, size in inner)
    # Outer steps go by multiples of a period, in which each view has a stretch of its own.
    period = min(outer, default=between + reach)
    return reach <= between <= period - reach and all(stride % period == 0 for stride in outer)

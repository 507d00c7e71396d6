"""Gradients of slices: where the slices of a tensor were all of it, their sum is a concatenation."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import fx

_aten = torch.ops.aten


def joined_slices(graph: fx.Graph) -> fx.Graph:
    """The graph, in which such sums became concatenations, whose parts their own loops store."""
    for node in reversed(list(graph.nodes)):
        terms = list(_terms(node)) if node.target is _aten.add.Tensor else []
        parts = _in_order(terms)
        if parts is not None:
            # The node stays the one that it is, so that whoever looks for its value finds it.
            node.target, node.kwargs = _aten.cat.default, {}
            node.args = ([part.args[0] for part in parts], parts[0].args[2])
    for node in reversed(list(graph.nodes)):
        if node.target in (_aten.slice_backward.default, _aten.add.Tensor) and not node.users:
            graph.erase_node(node)
    return graph


def _terms(node: fx.Node) -> Iterator[fx.Node]:
    """What a sum of sums adds up."""
    operands = node.args if node.target is _aten.add.Tensor and not node.kwargs else ()
    for operand in operands:
        if isinstance(operand, fx.Node):
            inner = operand.target is _aten.add.Tensor and len(operand.users) == 1 and not operand.kwargs
            yield from _terms(operand) if inner else (operand,)


def _in_order(terms: list[fx.Node]) -> list[fx.Node] | None:
    """Gradients of slices by where those begin, if together they are each element of one tensor once."""
    slices = [(*found, part) for part in terms if (found := _slice(part)) is not None]
    if len(slices) < 2 or len(slices) < len(terms) or any(one[:2] != slices[0][:2] for one in slices):
        return None
    sizes, dim, *_ = slices[0]
    slices.sort(key=lambda one: int(one[2]))
    at = 0
    for _, _, begin, end, _ in slices:
        if begin != at:
            return None
        at = end
    return [part for *_, part in slices] if at == sizes[dim] else None


def _slice(node: fx.Node) -> tuple[tuple[Any, ...], int, int, int] | None:
    """The sizes of what was sliced, along which dimension, from where to where; None for what is no such gradient."""
    if node.target is not _aten.slice_backward.default:
        return None
    given: Any = node.args
    _, sizes, dim, begin, end, step = given
    length = sizes[dim]
    if step != 1 or not all(isinstance(number, int) for number in (length, begin, end)):
        return None
    first, last = (max(at + length, 0) if at < 0 else min(at, length) for at in (begin, end))
    return tuple(sizes), dim % len(sizes), first, last

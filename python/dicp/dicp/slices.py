"""Gradients of slices: where the slices of a tensor were all of it, their sum is a concatenation, or a stack."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import fx

_aten = torch.ops.aten
_PARTS = (_aten.slice_backward.default, _aten.select_backward.default)


def joined_slices(graph: fx.Graph) -> fx.Graph:
    """The graph, in which such sums became concatenations, whose parts their own loops store."""
    for node in reversed(list(graph.nodes)):
        terms = list(_terms(node)) if node.target is _aten.add.Tensor else []
        parts = _in_order(terms)
        if parts is not None:
            # The node stays the one that it is, so that whoever looks for its value finds it.
            node.target, node.kwargs = _aten.cat.default, {}
            node.args = ([_piece(graph, part) for part in parts], parts[0].args[2])
    for node in reversed(list(graph.nodes)):
        if node.target in (*_PARTS, _aten.add.Tensor) and not node.users:
            graph.erase_node(node)
    return graph


def _piece(graph: fx.Graph, part: fx.Node) -> fx.Node:
    """What a gradient of a slice is at the slice itself, with all dimensions of what was sliced."""
    given: Any = part.args
    grad, _, dim, *_ = given
    if part.target is _aten.slice_backward.default:
        return grad  # type: ignore[no-any-return]
    with graph.inserting_before(part):
        piece = graph.call_function(_aten.unsqueeze.default, (grad, dim))
    piece.meta["val"] = grad.meta["val"].unsqueeze(dim)
    return piece


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
    if node.target not in _PARTS:
        return None
    given: Any = node.args
    _, sizes, dim, begin, *rest = given
    length = sizes[dim]
    if node.target is _aten.select_backward.default and isinstance(begin, int) and isinstance(length, int):
        begin %= length
    end, step = rest or (begin + 1, 1)
    if step != 1 or not all(isinstance(number, int) for number in (length, begin, end)):
        return None
    first, last = (max(at + length, 0) if at < 0 else min(at, length) for at in (begin, end))
    return tuple(sizes), dim % len(sizes), first, last

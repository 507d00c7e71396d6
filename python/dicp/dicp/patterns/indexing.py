"""Python's brackets and attributes of tensors as operators of ATen."""

from typing import Any

import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import statically_known_true

_LAST = 2**63 - 1  # where a slice without an end ends
_ALL = slice(None, None, None)

Parts = tuple[str, tuple[Any, ...], tuple[Any, ...]]  # of a term: the operator, its arguments, their defaults


def example(node: fx.Node) -> Any:
    """What tracing knows of a node's value."""
    return node.meta.get("example_value", node.meta.get("val"))


def is_tensor(value: Any) -> bool:
    return isinstance(value, fx.Node) and isinstance(example(value), torch.Tensor)


def turned(source: fx.Node) -> Parts:
    """The last two dimensions change places."""
    return "transpose", (source, -2, -1), (None, None, None)


def indexed(node: fx.Node) -> Parts | None:
    """One of several results, a slice or a new dimension at the end, elements by positions, or a turned matrix."""
    source: Any
    index: Any
    source, index = node.args
    if not isinstance(source, fx.Node):
        return None
    if not is_tensor(source):
        return "item", (source, index), (None, None)
    rank = example(source).dim()
    if isinstance(index, tuple) and len(index) <= rank and _is_whole(source, index):
        return "cast", (source, example(source).dtype), (None, None)
    match index:
        case "mT":
            return turned(source)
        case "T" if rank == 2:
            return turned(source)
        case (builtin, slice() as part) if builtin is Ellipsis and part.step in (None, 1):
            begin = 0 if part.start is None else part.start
            end = _LAST if part.stop is None else part.stop
            return "slice", (source, -1, begin, end, 1), (None, 0, None, None, 1)
        case (*before, None) if before == [Ellipsis] or (before == [_ALL] * rank):
            return "unsqueeze", (source, -1), (None, None)
        case tuple() if len(index) == rank and all(map(is_tensor, index)):
            return "index", (source, list(index)), (None, None)
    return None


def _is_whole(source: fx.Node, index: tuple[Any, ...]) -> bool:
    """e.g. mask[:, :, :length, :length] of a mask of that length."""

    def ends(part: Any, size: Any) -> bool:
        stop = example(part.stop) if isinstance(part.stop, fx.Node) else part.stop
        return stop is None or bool(statically_known_true(stop == size))

    slices = all(isinstance(part, slice) and part.start in (None, 0) and part.step in (None, 1) for part in index)
    return slices and all(map(ends, index, example(source).shape))

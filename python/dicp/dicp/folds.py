"""Reductions that join the loops of kernels: which fold of reduction/folds.h one is, and when that pays."""

from collections.abc import Sequence
from typing import Any

from dicp.program import Dim, View

# The folds of reduction/folds.h by the schemas' words; {} is the type that they compute in.
FOLDS = {
    "sum": "SumFold<{}>",
    "mean": "MeanFold<{}>",
    "product": "ProductFold<{}>",
    "largest": "ExtremumFold<{}, bool>{{true}}",
    "smallest": "ExtremumFold<{}, bool>{{false}}",
}


def constructed(fold: str, element: str) -> str:
    """A fold as an expression, e.g. "kernels::SumFold<float>{}"."""
    text = fold.format(element)
    return f"kernels::{text}" if text.endswith("}") else f"kernels::{text}{{}}"


_LONGEST_ROW = 65536  # elements; longer ones are shared by several teams in the vendor's own function
_FEWEST_ROWS, _LONGEST_OF_FEW = 8, 8192  # fewer rows must be short: one team reduces each


def reduced_dims(dim: Any, rank: int) -> tuple[int, ...]:
    """The dimensions that an argument `dim` names; all where it names none."""
    if dim is None or dim == []:
        return tuple(range(rank))
    listed: Sequence[int] = [dim] if isinstance(dim, int) else dim
    return tuple(sorted(d % rank if rank else 0 for d in listed))


def worth_a_row_kernel(rows: Dim, columns: Dim) -> bool:
    """Whether one team for each row is enough to keep a device busy, or there is little to do."""
    if not isinstance(columns, int) or columns < 2 or columns > _LONGEST_ROW:
        return False
    return not isinstance(rows, int) or rows >= _FEWEST_ROWS or columns <= _LONGEST_OF_FEW


def kept_strides(target: View, dims: Sequence[int], rank: int) -> tuple[Dim, ...]:
    """The strides of a reduction's result with the reduced dimensions in place."""
    if len(target.sizes) == rank:
        return tuple(0 if d in dims else stride for d, stride in enumerate(target.strides))
    left = iter(target.strides)
    return tuple(0 if d in dims else next(left) for d in range(rank))

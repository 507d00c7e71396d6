"""Judgements that comparing elements cannot give: results that ties may permute.

A check gives the outputs that it has judged completely, and a message where they are wrong.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from diopi_conformance.cases.plan import Function
from diopi_conformance.judgement.leading_checks import corners, leading
from diopi_conformance.judgement.special import may_reorder, written_judgement
from diopi_conformance.values.elements import Array
from diopigen.vocabulary.checks import CORNERS, INDICES_BY_VALUES, LEADING, VALUES_BY_INDICES

if TYPE_CHECKING:
    from diopi_conformance.prepare import Prepared

_KEEP_ORDER = ("pStable", "stable")  # arguments that leave ties no choice

Finding = tuple[tuple[str, ...], str]
Check = Callable[["Prepared", dict[str, Any]], Finding]


def special_check(function: Function) -> Check | None:
    """What the schema's `check`, or a judgement of the function's own, asks for beside comparing elements."""
    if (own := written_judgement(function)) is not None:
        return own
    if function.form == "backward":
        return None
    return _SPECIAL.get(function.check)


def _values_by_indices(prepared: "Prepared", actual: dict[str, Any]) -> Finding:
    """The indices must lead to the values; the values are then compared like any others."""
    names = [name for name in actual if prepared.case.dtypes[name] in ("i64", "i32")]
    indices = names[-1]
    values = next((name for name in actual if name != indices), None)
    if _stable(prepared) or values is None:
        return (), ""
    source, dim, found = _source(prepared, actual[indices])
    if message := _misplaced(indices, found, source, dim):
        return (indices,), message
    wanted = actual[values].reshape(found.shape)
    reached = np.take_along_axis(source, found, dim)
    wrong = ~_equal(reached, wanted)
    if wrong.any():
        at = _first(wrong)
        return (indices,), f"'{indices}' leads to {reached[at]} at {list(at)}, but '{values}' is {wanted[at]}"
    if found.shape[dim] > 1 and _repeats(found, dim):
        return (indices,), f"'{indices}' names one element twice"
    if order_is_free(prepared):
        actual[values] = _in_order_of(np.asarray(prepared.expected[values]), actual[values], dim)
    return (indices,), ""


def order_is_free(prepared: "Prepared") -> bool:
    """Whether the elements, rows or the corners of a polygon may come in another order than the expected ones."""
    is_unsorted = prepared.values.get("sorted") is False
    return is_unsorted or prepared.function.check == CORNERS.name or may_reorder(prepared)


def _indices_by_values(prepared: "Prepared", actual: dict[str, Any]) -> Finding:
    """Other indices are right too if they lead to equal values."""
    (name,) = actual
    source, dim, found = _source(prepared, actual[name])
    if _stable(prepared):
        return (), ""
    if message := _misplaced(name, found, source, dim):
        return (name,), message
    expected = np.asarray(prepared.expected[name]).reshape(found.shape)
    reached = np.take_along_axis(source, found, dim)
    wanted = np.take_along_axis(source, expected, dim)
    wrong = ~_equal(reached, wanted)
    if wrong.any():
        at = _first(wrong)
        return (name,), f"'{name}' leads to {reached[at]} at {list(at)}, expected {wanted[at]}"
    if found.shape == source.shape and found.shape[dim] > 1 and _repeats(found, dim):
        return (name,), f"'{name}' names one element twice"
    return (name,), ""


def _stable(prepared: "Prepared") -> bool:
    """Whether equal elements must keep their order, so that the indices are compared like any other output."""
    return any(prepared.values.get(name) is True for name in _KEEP_ORDER)


def _in_order_of(expected: Array, found: Array, dim: int) -> Array:
    """`found` with the smallest of each line where `expected` has it, and so on: its own order is not said."""
    if found.ndim == 0:
        return found
    ordered = np.empty_like(found)
    np.put_along_axis(ordered, np.argsort(expected, axis=dim), np.sort(found, axis=dim), axis=dim)
    return ordered


def _source(prepared: "Prepared", indices: Array) -> tuple[Array, int, Array]:
    """The tensor that the indices point into, the dimension, and the indices with all dimensions kept."""
    first = next(p for p in prepared.function.params if p.is_tensor and p.role in ("in", "inout"))
    source = np.atleast_1d(prepared.values[first.name])
    dim = prepared.values.get("dim")
    if dim is None:
        return source.reshape(-1), 0, np.atleast_1d(indices).reshape(-1)
    dim = int(dim) % source.ndim
    if indices.ndim < source.ndim:
        indices = np.expand_dims(indices, dim) if indices.ndim else indices.reshape((1,) * source.ndim)
    return source, dim, indices


def _misplaced(name: str, indices: Array, source: Array, dim: int) -> str:
    wrong = (indices < 0) | (indices >= source.shape[dim])
    return f"'{name}' holds {indices[_first(wrong)]}, out of range" if wrong.any() else ""


def _equal(a: Array, b: Array) -> Array:
    with np.errstate(invalid="ignore"):
        found: Array = (a == b) | ((a != a) & (b != b))
    return found


def _repeats(indices: Array, dim: int) -> bool:
    return bool((np.diff(np.sort(indices, axis=dim), axis=dim) == 0).any())


def _first(wrong: Array) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))


_SPECIAL: dict[str, Check] = {
    VALUES_BY_INDICES.name: _values_by_indices,
    INDICES_BY_VALUES.name: _indices_by_values,
    LEADING.name: leading,
    CORNERS.name: corners,
}

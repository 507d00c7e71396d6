"""Judgements of outputs of which only a part, or not the order, is said: counted results and corners of polygons."""

from typing import TYPE_CHECKING, Any

import numpy as np

from diopi_conformance.judgement.tolerance import tolerance
from diopi_conformance.values.elements import Array

if TYPE_CHECKING:
    from diopi_conformance.prepare import Prepared

Finding = tuple[tuple[str, ...], str]


def leading(prepared: "Prepared", actual: dict[str, Any]) -> Finding:
    """Of a list and its count the count is compared like any other output, of the list as many elements as it says."""
    items, count = (p.name for p in prepared.function.params if p.role == "out")
    length = int(prepared.expected[count])
    found, wanted = actual[items][:length], np.asarray(prepared.expected[items])[:length]
    wrong = found != wanted
    if wrong.any():
        at = int(np.argmax(wrong))
        return (items,), f"{items}[{at}] is {found[at]}, expected {wanted[at]}"
    return (items,), ""


def corners(prepared: "Prepared", actual: dict[str, Any]) -> Finding:
    """Rows x1, y1, x2, y2, ... of corners that may start anywhere and run either way.

    The element that is furthest off must be within the tolerance in the best of these orders.
    """
    (name,) = actual
    dtype = prepared.case.dtypes[name]
    wanted = np.asarray(prepared.expected[name], dtype=np.float64)
    found = actual[name].astype(np.float64)
    errors = np.stack([np.abs(found - order) for order in _orders(wanted)])  # [orders, rows, numbers]
    bound = tolerance(prepared.function, prepared.case, dtype).near(np.abs(wanted).max(-1, initial=0.0))
    worst = errors.max(-1, initial=0.0).min(0)
    wrong = ~(worst <= bound)
    if wrong.any():
        row = int(np.argmax(wrong))
        text = (
            f"{name}[{row}] has the corners {found[row].tolist()}, expected {wanted[row].tolist()} in any order around"
        )
        return (name,), text
    return (name,), ""


def _orders(rows: Array) -> list[Array]:
    """The rows with every corner as the first, in both directions."""
    points = rows.astype(np.float64).reshape(len(rows), rows.shape[1] // 2, 2)
    ways = (points, points[:, ::-1])
    return [np.roll(way, k, axis=1).reshape(rows.shape) for way in ways for k in range(points.shape[1])]

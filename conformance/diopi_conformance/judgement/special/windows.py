"""Greatest elements of windows: of equal ones in a window, any may be named."""

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from diopi_conformance.judgement.special.registry import Finding, judgement_for
from diopi_conformance.values.elements import Array

if TYPE_CHECKING:
    from diopi_conformance.prepare import Prepared

Axis = Array  # [windows, 3]: first place, step and number of places of each window along one dimension


@judgement_for("diopiMaxPool1dWithIndices", "diopiMaxPool2dWithIndices", "diopiMaxPool3dWithIndices")
def greatest_of_windows(prepared: "Prepared", actual: dict[str, Any]) -> Finding:
    given = prepared.values
    kernel, stride = given["kernel_size"], given["stride"] or given["kernel_size"]
    sizes = actual["indices"].shape[-len(kernel) :]
    axes = [
        np.stack([np.arange(n) * step - pad, np.full(n, dilation), np.full(n, width)], axis=-1)
        for n, width, step, pad, dilation in zip(
            sizes, kernel, stride, given["padding"], given["dilation"], strict=True
        )
    ]
    return _named(prepared, actual, axes)


@judgement_for(
    "diopiAdaptiveMaxPool1dWithIndices", "diopiAdaptiveMaxPool2dWithIndices", "diopiAdaptiveMaxPool3dWithIndices"
)
def greatest_of_adaptive_windows(prepared: "Prepared", actual: dict[str, Any]) -> Finding:
    """Window k of n over a length goes from the floor of k * length / n to the ceiling of (k + 1) * length / n."""
    rank = len(prepared.values["output_size"])
    lengths, counts = prepared.values["input"].shape[-rank:], actual["indices"].shape[-rank:]
    axes = []
    for length, n in zip(lengths, counts, strict=True):
        first, end = np.arange(n) * length // n, -(-np.arange(1, n + 1) * length // n)
        axes.append(np.stack([first, np.ones_like(first), end - first], axis=-1))
    return _named(prepared, actual, axes)


def _named(prepared: "Prepared", actual: dict[str, Any], axes: list[Axis]) -> Finding:
    """Each index must lie in its window and lead to the value beside it; values are compared like any others."""
    found, values, source = actual["indices"], actual["out"], prepared.values["input"]
    spatial = source.shape[-len(axes) :]
    outside = (found < 0) | (found >= prod(spatial))
    if outside.any():
        return ("indices",), f"'indices' holds {found[_first(outside)]} at {list(_first(outside))}, out of range"
    planes = source.reshape(*source.shape[: -len(axes)], prod(spatial))
    lines = found.reshape(*planes.shape[:-1], prod(found.shape[-len(axes) :]))
    reached = np.take_along_axis(planes, lines, -1).reshape(found.shape)
    wrong = ~((reached == values) | ((reached != reached) & (values != values)))
    if wrong.any():
        at = _first(wrong)
        return ("indices",), f"'indices' leads to {reached[at]} at {list(at)}, but 'out' is {values[at]}"
    strange = ~_inside(np.unravel_index(found, spatial), axes)
    if strange.any():
        at = _first(strange)
        return ("indices",), f"'indices' names {found[at]} at {list(at)}, which is not in its window"
    return ("indices",), ""


def _inside(places: tuple[Array, ...], axes: list[Axis]) -> Array:
    """Whether the places, each [..., windows of all axes], belong to their windows along every axis."""
    good = np.ones(places[0].shape, dtype=bool)
    for k, (place, axis) in enumerate(zip(places, axes, strict=True)):
        first, step, count = (part.reshape(-1, *[1] * (len(axes) - 1 - k)) for part in axis.T)
        gap = place - first
        good &= (gap >= 0) & (gap % step == 0) & (gap // step < count)
    return good


def _first(wrong: Array) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))

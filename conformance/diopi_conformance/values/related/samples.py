"""Samples of images that keep off places where results or their derivatives jump: pixels, and where images end."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from diopi_conformance.values.elements import Array
from diopi_conformance.values.related.registry import related_inputs_for

Values = Mapping[str, Any]

_TOO_NEAR = 0.02  # in pixels
_AWAY = 0.06


@related_inputs_for(
    "diopiDeformConvMmcv",
    "diopiDeformConvBackwardInputMmcv",
    "diopiDeformConvBackwardParametersMmcv",
    "diopiModulatedDeformConvMmcv",
)
def between_pixels(values: Values) -> dict[str, Any]:
    """The derivative by an offset jumps where the sample lies on a pixel's row or column.

    Offsets that are zero throughout stay: training begins with them, and there every vendor has the same slopes.
    """
    offset = np.array(values["offset"], dtype=np.float64)
    return {"offset": _off_pixels(offset)} if offset.any() else {}


@related_inputs_for("diopiMsDeformAttnMmcv")
def between_keys(values: Values) -> dict[str, Any]:
    places = np.array(values["sampling_loc"], dtype=np.float64)
    sizes = np.asarray(values["spatial_shapes"])[:, None, ::-1]  # x before y
    return {"sampling_loc": (_off_pixels(places * sizes - 0.5) + 0.5) / sizes}


def _off_pixels(places: Array) -> Array:
    return np.where(np.abs(places - np.round(places)) < _TOO_NEAR, places + _AWAY, places)


@related_inputs_for("diopiBorderAlignMmcv")
def clear_of_the_end(values: Values) -> dict[str, Any]:
    """What lies more than a pixel outside of the image is zero at once."""
    boxes = np.array(values["boxes"], dtype=np.float64)
    height, width = values["input"].shape[2:]
    for end in (-np.ones(4), np.array([width, height, width, height])):
        boxes = np.where(np.abs(boxes - end) < _TOO_NEAR, boxes + _AWAY, boxes)
    return {"boxes": boxes}

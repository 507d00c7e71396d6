"""Points that lie clearly inside or outside of boxes in space, and what pooling them leaves for its backward."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from diopi_conformance.values.elements import Array
from diopi_conformance.values.related.registry import related_inputs_for

Values = Mapping[str, Any]

_TOO_NEAR = 0.04  # how far half precision may move a point
_FAR = 30.0


@related_inputs_for("diopiPointsInBoxesPartMmcv", "diopiPointsInBoxesAllMmcv")
def clear_points(values: Values) -> dict[str, Any]:
    return {"pts": _moved(values["pts"], values["boxes"], 1)}


@related_inputs_for("diopiRoipointPool3dMmcv")
def clear_xyz(values: Values) -> dict[str, Any]:
    """The last box of each batch is out of reach."""
    boxes = np.array(values["boxes3d"])
    boxes[:, -1, 2] += _FAR / 2
    return {"xyz": _moved(values["xyz"], boxes, 1), "boxes3d": boxes}


@related_inputs_for("diopiRoiawarePool3dMmcv")
def clear_of_cells(values: Values) -> dict[str, Any]:
    """Where cells meet is a face too. The first point lies in the first box for sure."""
    cells, points, box = values["pts_idx_of_voxels"].shape[1:4], np.array(values["pts"]), values["rois"][0]
    x, y, z = box[3:6] * (0.3, 0.3, 0.8)
    cos, sin = np.cos(box[6]), np.sin(box[6])
    points[0] = box[:3] + np.array((x * cos - y * sin, x * sin + y * cos, z))
    return {"pts": _moved(points[None], values["rois"][None], cells)[0]}


def _moved(points: Array, boxes: Array, cells: Any) -> Array:
    """`points` [batch, points, 3], those that are near a face of one of the `boxes` [batch, boxes, 7] far away."""
    found = np.array(points, dtype=np.float64)
    shift = found[:, :, None] - np.asarray(boxes, dtype=np.float64)[:, None, :, :3]
    sizes, angle = (np.asarray(boxes, dtype=np.float64)[:, None, :, part] for part in (slice(3, 6), 6))
    cos, sin = np.cos(angle), np.sin(angle)
    along = np.stack([shift[..., 0] * cos + shift[..., 1] * sin, shift[..., 1] * cos - shift[..., 0] * sin], -1)
    local = np.concatenate([along + sizes[..., :2] / 2, shift[..., 2:]], -1)  # from the corner; z is the bottom's
    step = sizes / np.asarray(cells)
    within = ((local > -_TOO_NEAR) & (local < sizes + _TOO_NEAR)).all(-1)
    near = (np.abs(local - np.round(local / step) * step) < _TOO_NEAR).any(-1)
    found[(within & near).any(-1)] += _FAR
    return found


@related_inputs_for("diopiRoiawarePool3dBackwardMmcv")
def pooled_points(values: Values) -> dict[str, Any]:
    """How many points are in each cell, points in a row that it names, and of those one for each channel, or -1."""
    drawn, argmax = np.abs(values["pts_idx_of_voxels"]), np.array(values["argmax"])
    room, points = drawn.shape[-1] - 1, len(values["grad_in"])
    counts = drawn[..., 0] % (room + 1)
    named = (drawn[..., 1:2] + np.arange(-1, room)) % points
    named[..., 0] = counts
    chosen = 1 + np.abs(argmax) % np.maximum(counts, 1)[..., None]
    argmax = np.where(counts[..., None] > 0, np.take_along_axis(named, chosen, -1), -1)
    return {"pts_idx_of_voxels": named, "argmax": argmax}

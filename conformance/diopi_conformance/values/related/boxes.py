"""Boxes in the order of their scores, no overlap too near the threshold to call, and candidates for corners."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from diopi_conformance.polygons import (
    hull,
    overlap,
    points_of,
    rectangle,
    rectangle_along,
    sides,
    signed_area,
)
from diopi_conformance.values.elements import Array
from diopi_conformance.values.related.registry import related_inputs_for

Values = Mapping[str, Any]

_TOO_NEAR = 0.02  # what half precision may make of an overlap
_FAR = 40.0
_CLEARLY_MORE = 1.02


@related_inputs_for("diopiNmsMmcv")
def ranked(values: Values) -> dict[str, Any]:
    """No two scores are equal: the order of equal ones is not said."""
    return {"scores": _ranks(values["scores"])}


def _ranks(scores: Array) -> Array:
    """The places in the order of the scores, in 64ths, which half precision holds."""
    return np.argsort(np.argsort(scores, kind="stable"), kind="stable") / 64


@related_inputs_for("diopiNmsRotatedMmcv")
def sorted_boxes(values: Values) -> dict[str, Any]:
    """Labels stand in the last column of the boxes too; with none there is no such column."""
    boxes, labels = np.array(values["dets"]), values["labels"]
    if labels is not None:
        boxes[:, 5] = labels
    boxes[:, :5] = _clear_cut(boxes[:, :5], values["iou_threshold"])
    scores = _ranks(values["scores"])
    order = np.argsort(-scores)
    return {"dets": boxes, "scores": scores, "order": order, "dets_sorted": boxes[order]}


def _clear_cut(boxes: Array, threshold: float) -> Array:
    """The boxes; of two whose overlap is near the threshold the second is moved away from all others."""
    found = np.array(boxes, dtype=np.float64)
    for a, b in combinations(range(len(found)), 2):
        if abs(overlap(rectangle(*found[a]), rectangle(*found[b])) - threshold) < _TOO_NEAR:
            found[b, 0] += _FAR * (b + 1)
    return found


@related_inputs_for("diopiMinAreaPolygonsMmcv")
def in_one_rectangle(values: Values) -> dict[str, Any]:
    """Where another rectangle is almost as small, as around each triangle, four of the points span the first."""
    sets = np.array(values["pointsets"], dtype=np.float64)
    for row in sets:
        corners = hull(points_of(row))
        found = sorted((rectangle_along(a, b, corners) for a, b in sides(corners)), key=signed_area)
        if signed_area(found[1]) < _CLEARLY_MORE * signed_area(found[0]):
            row[:8] = np.ravel(found[0])
    return {"pointsets": sets}


@related_inputs_for("diopiDiffIouRotatedSortVerticesMmcv")
def candidates(values: Values) -> dict[str, Any]:
    """At most eight corners; the first pair of boxes does not meet, the last two boxes are the same."""
    vertices, mask = np.array(values["vertices"]), np.array(values["mask"])
    if not mask.size:
        return {}
    mask &= np.cumsum(mask, axis=-1) <= 8
    mask[0, 0] &= np.cumsum(mask[0, 0]) <= 2
    vertices[-1, -1, 4:8] = vertices[-1, -1, :4]
    mask[-1, -1] = np.arange(mask.shape[-1]) < 8
    return {"vertices": vertices, "mask": mask, "num_valid": mask.sum(-1)}

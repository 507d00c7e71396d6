"""Boxes in the plane: overlaps, what is kept of boxes that overlap, and corners in order."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.polygons import Polygon, holds, overlap, points_of, rectangle
from diopi_conformance.references.registry import reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]


@reference_for("diopiBboxOverlapsMmcv")
def bbox_overlaps(call: "ReferenceCall") -> Outputs:
    first, second, offset = call["bboxes1"], call["bboxes2"], call["offset"]
    if not call["aligned"]:
        first = first[:, None]
    sizes = torch.minimum(first[..., 2:], second[..., 2:]) - torch.maximum(first[..., :2], second[..., :2]) + offset
    shared = sizes.clamp(min=0).prod(-1)
    own, other = ((box[..., 2:] - box[..., :2] + offset).prod(-1) for box in (first, second))
    return {"ious": shared / (own + other - shared if call["mode"] == 0 else own.expand_as(shared))}


@reference_for("diopiBoxIouRotatedMmcv")
def box_iou_rotated(call: "ReferenceCall") -> Outputs:
    return {"ious": _flat_overlaps(call, lambda row: rectangle(*row))}


@reference_for("diopiBoxIouQuadriMmcv")
def box_iou_quadri(call: "ReferenceCall") -> Outputs:
    return {"ious": _flat_overlaps(call, points_of)}


def _flat_overlaps(call: "ReferenceCall", polygon: Callable[[Sequence[float]], Polygon]) -> torch.Tensor:
    first, second = ([polygon(row) for row in call[name].tolist()] for name in ("bboxes1", "bboxes2"))
    pairs = zip(first, second, strict=True) if call["aligned"] else ((a, b) for a in first for b in second)
    return torch.tensor([overlap(a, b, call["mode"] == 1) for a, b in pairs], dtype=torch.float64)


def kept(count: int, excludes: Callable[[int, int], bool]) -> list[int]:
    """Goes through 0, 1, ... and keeps what no kept one before it excludes."""
    found: list[int] = []
    for candidate in range(count):
        if not any(excludes(other, candidate) for other in found):
            found.append(candidate)
    return found


@reference_for("diopiNmsMmcv")
def nms(call: "ReferenceCall") -> Outputs:
    order = torch.argsort(call["scores"], descending=True, stable=True)
    boxes, offset = call["dets"][order], call["offset"]
    boxes = torch.cat([boxes[:, :2], boxes[:, 2:] + offset], 1).tolist()
    corners = [[(x1, y1), (x2, y1), (x2, y2), (x1, y2)] for x1, y1, x2, y2 in boxes]
    chosen = kept(len(corners), lambda a, b: overlap(corners[a], corners[b]) > call["iou_threshold"])
    return {"out": order[chosen]}


@reference_for("diopiNmsRotatedMmcv")
def nms_rotated(call: "ReferenceCall") -> Outputs:
    order = call["order"]
    boxes = [rectangle(*row) for row in call["dets_sorted"][:, :5].tolist()]
    labels = call["labels"][order].tolist() if call["multi_label"] else [0] * len(boxes)

    def excludes(a: int, b: int) -> bool:
        return bool(labels[a] == labels[b] and overlap(boxes[a], boxes[b]) > call["iou_threshold"])

    return {"out": order[kept(len(boxes), excludes)]}


@reference_for("diopiDiffIouRotatedSortVerticesMmcv")
def sort_vertices(call: "ReferenceCall") -> Outputs:
    rows = zip(call["vertices"].flatten(0, 1).tolist(), call["mask"].flatten(0, 1).tolist(), strict=True)
    found = torch.tensor([_ring(vertices, mask) for vertices, mask in rows], dtype=torch.int32)
    return {"out": found.reshape(*call["mask"].shape[:2], 9)}


def _ring(vertices: list[list[float]], mask: list[bool]) -> list[int]:
    """Nine candidates: the corners by angle from 0 to 2 pi, the first again, and one that is none."""
    spare = next(k for k in range(8, len(mask)) if not mask[k])  # the first 8 are corners of the boxes themselves
    corners: dict[tuple[float, float], int] = {}  # of coinciding candidates the first
    for k, marked in enumerate(mask):
        if marked:
            corners.setdefault((vertices[k][0], vertices[k][1]), k)
    if sum(mask) < 3:
        return [spare] * 9
    order = sorted(corners.values(), key=lambda k: math.atan2(vertices[k][1], vertices[k][0]) % (2 * math.pi))
    return (order + order[:1] + [spare] * 9)[:9]


@reference_for("diopiPointsInPolygonsMmcv")
def points_in_polygons(call: "ReferenceCall") -> Outputs:
    polygons = [points_of(row) for row in call["polygons"].tolist()]
    inside = [[float(holds(polygon, (x, y))) for polygon in polygons] for x, y in call["points"].tolist()]
    shape = call["points"].shape[0], len(polygons)
    return {"output": torch.tensor(inside, dtype=torch.float64).reshape(shape)}

"""Boxes in space: areas they share seen from above, the points in them, and pooling those points."""

import math
from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.polygons import overlap, rectangle, shared_area
from diopi_conformance.references.boxes import kept
from diopi_conformance.references.registry import SCRATCH, reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]


def _from_above(boxes: torch.Tensor, turned: bool = True) -> list[list[tuple[float, float]]]:
    return [rectangle(x, y, dx, dy, angle if turned else 0.0) for x, y, _, dx, dy, _, angle in boxes.tolist()]


@reference_for("diopiIou3dBoxesOverlapBevMmcv")
def overlap_bev(call: "ReferenceCall") -> Outputs:
    first, second = _from_above(call["boxes_a"]), _from_above(call["boxes_b"])
    found = torch.tensor([[shared_area(a, b) for b in second] for a in first], dtype=torch.float64)
    return {"ans_overlap": found.reshape(len(first), len(second))}


@reference_for("diopiIou3dNms3dMmcv")
def nms(call: "ReferenceCall") -> Outputs:
    return _kept(call, turned=True)


@reference_for("diopiIou3dNms3dNormalMmcv")
def nms_normal(call: "ReferenceCall") -> Outputs:
    return _kept(call, turned=False)


def _kept(call: "ReferenceCall", turned: bool) -> Outputs:
    """What follows the kept ones is not looked at; here it is -1."""
    boxes, threshold = _from_above(call["boxes"], turned), call["nms_overlap_thresh"]
    found = kept(len(boxes), lambda a, b: overlap(boxes[a], boxes[b]) > threshold)
    rest = [-1] * (len(boxes) - len(found))
    return {"keep": torch.tensor(found + rest, dtype=torch.int64), "keep_num": torch.tensor(len(found))}


def local(points: torch.Tensor, box: torch.Tensor) -> torch.Tensor:
    """The points [points, 3] seen from the box: x and y along its sides from its centre, z from its bottom."""
    shift = points - box[:3]
    cos, sin = torch.cos(box[6]), torch.sin(box[6])
    x, y = shift[:, 0] * cos + shift[:, 1] * sin, shift[:, 1] * cos - shift[:, 0] * sin
    return torch.stack([x, y, shift[:, 2]], 1)


def inside(points: torch.Tensor, box: torch.Tensor) -> torch.Tensor:
    """Which of the points lie in the box."""
    x, y, z = local(points, box).unbind(1)
    return (x.abs() < box[3] / 2) & (y.abs() < box[4] / 2) & (z >= 0) & (z <= box[5])


def _members(points: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
    """[batch, points, boxes]: which point lies in which box."""
    found = torch.zeros(*points.shape[:2], boxes.shape[1], dtype=torch.bool)
    for b, batch in enumerate(boxes):
        for t, box in enumerate(batch):
            found[b, :, t] = inside(points[b], box)
    return found


@reference_for("diopiPointsInBoxesPartMmcv")
def points_in_boxes_part(call: "ReferenceCall") -> Outputs:
    members = _members(call["pts"], call["boxes"])
    first = [[[*row, True].index(True) for row in rows] for rows in members.tolist()]
    found = torch.tensor(first, dtype=torch.int32).reshape(members.shape[:2])
    return {"box_idx_of_points": torch.where(found == members.shape[2], -1, found)}


@reference_for("diopiPointsInBoxesAllMmcv")
def points_in_boxes_all(call: "ReferenceCall") -> Outputs:
    return {"box_idx_of_points": _members(call["pts"], call["boxes"]).int()}


@reference_for("diopiRoiawarePool3dMmcv")
def roiaware_pool3d(call: "ReferenceCall") -> Outputs:
    """Of Shi et al., From Points to Parts, section 3.2.2. What lies in no cell keeps its value."""
    named, features = call["pts_idx_of_voxels"].clone(), call["pooled_features"].clone()
    argmax = torch.full(features.shape, -1, dtype=torch.int32)
    room = named.shape[-1] - 1  # the first element counts
    for n, roi in enumerate(call["rois"]):
        for cell, points in _cells(call["pts"], roi, named.shape[1:4]).items():
            chosen = points[:room]
            named[n][cell][: len(chosen) + 1] = torch.tensor([len(chosen), *chosen])
            values = call["pts_feature"][chosen]
            greatest = torch.tensor(chosen)[values.argmax(0)]
            features[n][cell] = values.amax(0) if call["pool_method"] == 0 else values.mean(0)
            argmax[n][cell] = greatest.int()
    return {
        "argmax": argmax if call["pool_method"] == 0 else SCRATCH,
        "pts_idx_of_voxels": named,
        "pooled_features": features,
    }


def _cells(points: torch.Tensor, roi: torch.Tensor, counts: torch.Size) -> dict[tuple[int, ...], list[int]]:
    """The points in each cell of the box, in their order."""
    found: dict[tuple[int, ...], list[int]] = {}
    places = local(points, roi) + torch.stack([roi[3] / 2, roi[4] / 2, torch.zeros_like(roi[5])])
    for index in inside(points, roi).nonzero()[:, 0].tolist():
        parts = [float(places[index, d] / roi[3 + d]) * count for d, count in enumerate(counts)]
        cell = tuple(min(max(math.floor(p), 0), count - 1) for p, count in zip(parts, counts, strict=True))
        found.setdefault(cell, []).append(index)
    return found


@reference_for("diopiRoiawarePool3dBackwardMmcv")
def roiaware_pool3d_backward(call: "ReferenceCall") -> Outputs:
    found = call["grad_in"].clone()
    channels = range(found.shape[1])
    rows = zip(*(call[name].flatten(0, 3) for name in ("pts_idx_of_voxels", "argmax", "grad_out")), strict=True)
    for named, argmax, grad in rows:
        if call["pool_method"] == 0:
            for c in channels:
                if argmax[c] >= 0:
                    found[int(argmax[c]), c] += grad[c]
        else:
            for index in named[1 : int(named[0]) + 1].tolist():
                found[index] += grad / int(named[0])
    return {"grad_in": found}


@reference_for("diopiRoipointPool3dMmcv")
def roipoint_pool3d(call: "ReferenceCall") -> Outputs:
    """Of Shi et al., PointRCNN, section 3.3."""
    members = _members(call["xyz"], call["boxes3d"])
    features = call["pooled_features"].clone()
    rows = torch.cat([call["xyz"], call["pts_feature"]], -1)
    for b, m in members.any(1).nonzero().tolist():
        points = members[b, :, m].nonzero()[:, 0]
        features[b, m] = rows[b, points[torch.arange(features.shape[2]) % len(points)]]
    return {"pooled_features": features, "pooled_empty_flag": (~members.any(1)).int()}

"""Convex hulls of sets of points: their overlap with polygons, its gradient, and the smallest rectangle around them."""

from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.polygons import (
    Point,
    hull,
    overlap,
    points_of,
    rectangle_along,
    shared_area,
    sides,
    signed_area,
)
from diopi_conformance.references.registry import reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]


@reference_for("diopiConvexIouMmcv")
def convex_iou(call: "ReferenceCall") -> Outputs:
    hulls = [hull(points_of(row)) for row in call["pointsets"].tolist()]
    polygons = [points_of(row) for row in call["polygons"].tolist()]
    found = torch.tensor([[float(overlap(a, b)) for b in polygons] for a in hulls], dtype=torch.float64)
    return {"ious": found.reshape(len(hulls), len(polygons))}


@reference_for("diopiConvexGiouMmcv")
def convex_giou(call: "ReferenceCall") -> Outputs:
    rows = zip(call["pointsets"], call["polygons"].tolist(), strict=True)
    found = [_giou_and_gradient(points, points_of(polygon)) for points, polygon in rows]
    return {"output": torch.stack(found) if found else call["pointsets"].new_zeros((0, 19))}


def _giou_and_gradient(numbers: torch.Tensor, polygon: list[Point]) -> torch.Tensor:
    """[19]: the derivatives by the 18 numbers, and the measure."""
    leaf = numbers.detach().clone().requires_grad_(True)
    with torch.enable_grad():
        measure = _giou(points_of(leaf.unbind()), polygon)
    (gradient,) = torch.autograd.grad(measure, leaf)
    return torch.cat([gradient, measure.detach()[None]])


def _giou(points: list[Point], polygon: list[Point]) -> torch.Tensor:
    """Rezatofighi et al., Generalized Intersection over Union, algorithm 1."""
    own = hull(points)
    shared = shared_area(own, polygon)
    union = signed_area(own) + abs(signed_area(polygon)) - shared
    around = signed_area(hull([*points, *polygon]))
    found: torch.Tensor = shared / union - (around - union) / around
    return found


@reference_for("diopiMinAreaPolygonsMmcv")
def min_area_polygons(call: "ReferenceCall") -> Outputs:
    found = [_smallest_rectangle(points_of(row)) for row in call["pointsets"].tolist()]
    return {"polygons": torch.tensor(found, dtype=torch.float64).reshape(-1, 8)}


def _smallest_rectangle(points: list[Point]) -> list[float]:
    """x, y of four corners: one side of the smallest lies along a side of the hull (Freeman and Shapira)."""
    corners = hull(points)
    rectangles = [rectangle_along(a, b, corners) for a, b in sides(corners)]
    return [n for point in min(rectangles, key=signed_area) for n in point]

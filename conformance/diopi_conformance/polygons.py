"""Polygons of the plane: areas, convex hulls, intersections. Coordinates are whatever calculates like numbers."""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

Point = tuple[Any, Any]
Polygon = Sequence[Point]


def points_of(numbers: Iterable[Any]) -> list[Point]:
    """x1, y1, x2, y2, ... as points."""
    flat = list(numbers)
    return list(zip(flat[::2], flat[1::2], strict=True))


def rectangle(x: float, y: float, width: float, height: float, angle: float = 0.0) -> list[Point]:
    """The corners about a centre, the angle in radians from the x axis towards the y axis."""
    cos, sin = math.cos(angle), math.sin(angle)
    halves = [(dx * width / 2, dy * height / 2) for dx, dy in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    return [(x + a * cos - b * sin, y + a * sin + b * cos) for a, b in halves]


def rectangle_along(a: Point, b: Point, points: Polygon) -> list[Point]:
    """The smallest rectangle around the points that has a side in the direction from `a` to `b`."""
    angle = math.atan2(b[1] - a[1], b[0] - a[0])
    cos, sin = math.cos(angle), math.sin(angle)
    along = [x * cos + y * sin for x, y in points]
    beside = [y * cos - x * sin for x, y in points]
    left, right, low, high = min(along), max(along), min(beside), max(beside)
    turned = ((left, low), (right, low), (right, high), (left, high))
    return [(u * cos - v * sin, u * sin + v * cos) for u, v in turned]


def cross(origin: Point, a: Point, b: Point) -> Any:
    """Positive where `b` lies to the left of the way from `origin` to `a`."""
    return (a[0] - origin[0]) * (b[1] - origin[1]) - (a[1] - origin[1]) * (b[0] - origin[0])


def sides(polygon: Polygon) -> Iterable[tuple[Point, Point]]:
    """The ends of each side."""
    return pairwise([*polygon, polygon[0]]) if polygon else ()


def signed_area(polygon: Polygon) -> Any:
    """Positive where the corners run from the x axis towards the y axis; 0 for less than three."""
    return sum((a[0] * b[1] - a[1] * b[0] for a, b in sides(polygon)), 0.0) / 2


def hull(points: Polygon) -> list[Point]:
    """The corners of the convex hull, of positive area; points on its sides are none (Andrew's monotone chain)."""
    order = sorted(points)
    return [*_chain(order), *_chain(order[::-1])]


def _chain(order: Polygon) -> list[Point]:
    """One half of the hull, its last point left out."""
    kept: list[Point] = []
    for point in order:
        while len(kept) >= 2 and cross(kept[-2], kept[-1], point) <= 0:
            kept.pop()
        kept.append(point)
    return kept[:-1]


def intersection(first: Polygon, second: Polygon) -> list[Point]:
    """What two convex polygons share (Sutherland and Hodgman); empty where they do not touch."""
    kept = list(first) if signed_area(first) >= 0 else list(first)[::-1]
    window = second if signed_area(second) >= 0 else second[::-1]
    for start, end in sides(window):
        kept = _left_part(kept, start, end)
    return kept


def _left_part(polygon: Polygon, start: Point, end: Point) -> list[Point]:
    kept: list[Point] = []
    for a, b in sides(polygon):
        beside_a, beside_b = cross(start, end, a), cross(start, end, b)
        if beside_a >= 0:
            kept.append(a)
        if (beside_a > 0 > beside_b) or (beside_a < 0 < beside_b):
            share = beside_a / (beside_a - beside_b)
            kept.append((a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])))
    return kept


def shared_area(first: Polygon, second: Polygon) -> Any:
    """The area that two convex polygons share."""
    return signed_area(intersection(first, second))


def overlap(first: Polygon, second: Polygon, of_first: bool = False) -> Any:
    """The shared area over that of both together, or over that of the first; 0 where there is none."""
    shared = shared_area(first, second)
    areas = [abs(signed_area(p)) for p in (first, second)]
    whole = areas[0] if of_first else areas[0] + areas[1] - shared
    return shared / whole if whole > 0 else 0.0


def holds(polygon: Polygon, point: Point) -> bool:
    """Whether a point lies within, by the number of sides that a ray to the right meets."""
    x, y = point
    met = [a[0] + (y - a[1]) * (b[0] - a[0]) / (b[1] - a[1]) > x for a, b in sides(polygon) if (a[1] > y) != (b[1] > y)]
    return bool(sum(met) % 2 == 1)

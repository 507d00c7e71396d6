"""Neighbours of points: of those at equal distances, or nearly so, any may be named."""

from typing import TYPE_CHECKING, Any

import numpy as np

from diopi_conformance.judgement.special.registry import Finding, judgement_for
from diopi_conformance.values.elements import Array

if TYPE_CHECKING:
    from diopi_conformance.prepare import Prepared

_CLOSE = {"f16": 2e-2}  # by how much distances may differ that a library takes for equal, of 1 and of their size
_USUALLY = 1e-4


@judgement_for("diopiKnnMmcv")
def nearest(prepared: "Prepared", actual: dict[str, Any]) -> Finding:
    values = prepared.values
    return _nearest(prepared, actual, "idx_tensor", "dist2_tensor", values["new_xyz_tensor"], values["xyz_tensor"])


@judgement_for("diopiThreeNnMmcv")
def nearest_three(prepared: "Prepared", actual: dict[str, Any]) -> Finding:
    return _nearest(prepared, actual, "idx", "dist2", prepared.values["unknown"], prepared.values["known"])


@judgement_for("diopiChamferDistanceMmcv")
def nearest_both_ways(prepared: "Prepared", actual: dict[str, Any]) -> Finding:
    clouds = prepared.values["xyz1"], prepared.values["xyz2"]
    for way, (centres, points) in (("1", clouds), ("2", clouds[::-1])):
        if (finding := _nearest(prepared, actual, f"idx{way}", f"dist{way}", centres, points))[1]:
            return finding
    return ("idx1", "idx2"), ""


def _nearest(
    prepared: "Prepared", actual: dict[str, Any], indices: str, distances: str, centres: Array, points: Array
) -> Finding:
    """The indices, [batch, centre, rank] or [batch, centre], must lead to points at the expected distances."""
    found, expected = (
        a.reshape(*centres.shape[:2], -1) for a in (actual[indices], np.asarray(prepared.expected[distances]))
    )
    if ((found < 0) | (found >= points.shape[1])).any():
        return (indices,), f"'{indices}' names points that there are not"
    if (np.diff(np.sort(found, axis=-1), axis=-1) == 0).any():
        return (indices,), f"'{indices}' names one point twice"
    reached = np.stack([cloud[places] for cloud, places in zip(points, found, strict=True)])
    squares = ((reached - centres[:, :, None]) ** 2).sum(-1)
    close = _CLOSE.get(prepared.case.dtypes[distances], _USUALLY)
    wrong = np.abs(squares - expected) > close * (1 + expected)
    if wrong.any():
        at = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
        return (indices,), f"'{indices}' leads to the squared distance {squares[at]} at {list(at)}, not {expected[at]}"
    return (indices,), ""


@judgement_for("diopiStackBallQueryMmcv")
def stacked_ball(prepared: "Prepared", actual: dict[str, Any]) -> Finding:
    """What stands behind the -1 of a centre without points does not matter."""
    expected = np.asarray(prepared.expected["idx"])
    without = expected[:, 0] == -1
    actual["idx"] = actual["idx"].copy()
    actual["idx"][without, 1:] = expected[without, 1:]
    return (), ""


@judgement_for("diopiFurthestPointSamplingMmcv")
def furthest(prepared: "Prepared", actual: dict[str, Any]) -> Finding:
    points = prepared.values["points_xyz"]
    return _furthest(actual["idx_tensor"], ((points[:, :, None] - points[:, None]) ** 2).sum(-1))


@judgement_for("diopiFurthestPointSamplingWithDistMmcv")
def furthest_by_distances(prepared: "Prepared", actual: dict[str, Any]) -> Finding:
    return _furthest(actual["idx_tensor"], prepared.values["points_dist"])


def _furthest(picked: Array, distances: Array) -> Finding:
    """Each pick, [batch, picks], must be as far from those before it as any point is, by [batch, points, points]."""
    for batch, (order, between) in enumerate(zip(picked, distances, strict=True)):
        if ((order < 0) | (order >= len(between))).any():
            return ("idx_tensor",), "'idx_tensor' names points that there are not"
        if order[0] != 0:
            return ("idx_tensor",), f"'idx_tensor' begins with {order[0]} at [{batch}, 0], not with the first point"
        for step in range(1, len(order)):
            gaps = between[order[:step]].min(axis=0)
            if gaps[order[step]] < gaps.max() - _USUALLY * (1 + gaps.max()):
                message = f"'idx_tensor' picks a point at {gaps[order[step]]} at [{batch}, {step}]"
                return ("idx_tensor",), f"{message}, but the furthest one is at {gaps.max()}"
    return ("idx_tensor",), ""

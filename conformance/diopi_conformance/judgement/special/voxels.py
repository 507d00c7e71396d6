"""Voxels: their order is free where nobody asked for one, and what holds nothing may be left alone."""

from typing import TYPE_CHECKING, Any

import numpy as np

from diopi_conformance.judgement.special.registry import Finding, judgement_for
from diopi_conformance.values.elements import Array, decode

if TYPE_CHECKING:
    from diopi_conformance.prepare import Prepared


@judgement_for("diopiHardVoxelizeMmcv", reorders=lambda prepared: not prepared.values["deterministic"])
def hard_voxelize(prepared: "Prepared", actual: dict[str, Any]) -> Finding:
    expected = {name: np.asarray(value) for name, value in prepared.expected.items()}
    count = int(expected["voxel_num"])
    if int(actual["voxel_num"]) != count:
        return (), f"'voxel_num' is {int(actual['voxel_num'])}, expected {count}"
    names = ("coors", "num_points_per_voxel", "voxels")
    if not prepared.values["deterministic"]:
        order = _order(actual["coors"][:count], expected["coors"][:count])
        for name in names if order is not None else ():
            actual[name] = np.concatenate([actual[name][:count][order], actual[name][count:]])
        _sort_points(actual["voxels"], expected["voxels"], expected["num_points_per_voxel"])
    room = np.arange(expected["voxels"].shape[1])
    idle = room >= expected["num_points_per_voxel"][:, None]  # rows of points that there are not
    for name in names:
        unused = idle if name == "voxels" else np.arange(len(expected[name])) >= count
        actual[name] = _settled(actual[name], expected[name], _before(prepared, name), unused)
    return (), ""


def _order(found: Array, expected: Array) -> Array | None:
    """For each expected row the place of the equal one; None if the rows are others."""
    if len(found) != len(expected):
        return None
    first, second = (np.lexsort(rows.T) for rows in (found, expected))
    if not np.array_equal(found[first], expected[second]):
        return None
    order = np.empty_like(first)
    order[second] = first
    return order


def _sort_points(found: Array, expected: Array, counts: Array) -> None:
    """Takes the points of each voxel into the expected order, in place, where they are the same."""
    for voxel, count in enumerate(counts):
        order = _order(found[voxel, :count], expected[voxel, :count])
        if order is not None:
            found[voxel, :count] = found[voxel, :count][order]


def _before(prepared: "Prepared", label: str) -> Array:
    buffer = next(b for b in prepared.buffers if b.label == label)
    return decode(buffer.before[buffer.layout.positions()], buffer.dtype)


def _settled(found: Array, expected: Array, before: Array, unused: Array) -> Array:
    """`found` with what was expected in unused rows, as far as they are zero or as they were `before`."""
    settled = found.copy()
    same = (found == before) | ((found != found) & (before != before)) | (found == 0)
    same &= unused.reshape(*unused.shape, *[1] * (found.ndim - unused.ndim))
    settled[same] = expected[same]
    return settled


@judgement_for("diopiDynamicVoxelizeMmcv")
def dynamic_voxelize(prepared: "Prepared", actual: dict[str, Any]) -> Finding:
    """Of a point outside only the first number is promised: no voxel has -1 there."""
    expected = np.asarray(prepared.expected["coors"])
    outside = expected[:, 0] == -1
    actual["coors"] = actual["coors"].copy()
    actual["coors"][outside, 1:] = expected[outside, 1:]
    return (), ""


@judgement_for("diopiDynamicPointToVoxelMmcv", reorders=lambda _: True)
def point_to_voxel(prepared: "Prepared", actual: dict[str, Any]) -> Finding:
    """Rows may come in any order, which the rows of points follow."""
    labels = [f"outlist[{i}]" for i in range(4)]
    if any(label not in actual for label in labels):
        return (), ""  # a fault of its own
    order = _order(actual[labels[1]], np.asarray(prepared.expected["outlist"][1]))
    if order is not None and len(order):
        for label in (labels[0], labels[1], labels[3]):
            actual[label] = actual[label][order]
        rows = actual[labels[2]]
        known = (rows >= 0) & (rows < len(order))
        actual[labels[2]] = np.where(known, np.argsort(order)[np.where(known, rows, 0)], rows)
    return (), ""

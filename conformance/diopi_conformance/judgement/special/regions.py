"""Greatest pixels of regions: of equal ones in a bin, any may be named."""

from typing import TYPE_CHECKING, Any

import numpy as np

from diopi_conformance.judgement.special.registry import Finding, judgement_for
from diopi_conformance.values.elements import Array

if TYPE_CHECKING:
    from diopi_conformance.prepare import Prepared


@judgement_for("diopiRoiPoolMmcv")
def greatest_of_bins(prepared: "Prepared", actual: dict[str, Any]) -> Finding:
    """Where another place is named than the reference's, it must lie in the bin and hold the same; -1 has no other."""
    found, expected = actual["argmax"], np.asarray(prepared.expected["argmax"])
    planes = prepared.values["input"]
    for at in zip(*np.nonzero(found != expected), strict=True):
        place, wanted = int(found[at]), int(expected[at])
        plane = planes[int(prepared.values["rois"][at[0]][0]), at[1]]
        where = f"'argmax' is {place} at {[int(i) for i in at]}"
        if wanted < 0 or not 0 <= place < plane.size:
            return ("argmax",), f"{where}, expected {wanted}"
        if plane.flat[place] != plane.flat[wanted]:
            return ("argmax",), f"{where}, which leads to {plane.flat[place]}, but {plane.flat[wanted]} is greatest"
        if not _touched(prepared.values, at, divmod(place, plane.shape[1]), plane):
            return ("argmax",), f"{where}, which is not in its bin"
    return ("argmax",), ""


def _touched(values: dict[str, Any], at: tuple[Any, ...], place: tuple[int, int], plane: Array) -> bool:
    """Whether the bin `at` [roi, channel, row, column] touches the pixel (y, x): a bin has all that it touches."""
    roi, scale = values["rois"][at[0]], values["spatial_scale"]
    for axis, bins in ((0, values["pooled_height"]), (1, values["pooled_width"])):
        start, end = roi[2 - axis] * scale, (roi[4 - axis] + 1) * scale
        size = (end - start) / bins
        first, last = start + at[2 + axis] * size, start + (at[2 + axis] + 1) * size
        if not max(np.floor(first), 0) <= place[axis] < min(np.ceil(last), plane.shape[axis]):
            return False
    return True

"""What pooling over the exact area of regions leaves for the gradient of the regions."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from diopi_conformance.values.elements import Array
from diopi_conformance.values.related.registry import related_inputs_for


@related_inputs_for("diopiPrroiPoolCoorBackwardMmcv")
def pooled(values: Mapping[str, Any]) -> dict[str, Any]:
    image, rois = (np.asarray(values[name], dtype=np.float64) for name in ("input", "rois"))
    bins, scale = (values["pooled_height"], values["pooled_width"]), values["spatial_scale"]
    found = np.zeros((len(rois), image.shape[1], *bins))
    for out, roi in zip(found, rois, strict=True):
        x1, y1, x2, y2 = roi[1:] * scale
        rows, columns = _shares(y1, y2, bins[0], image.shape[2]), _shares(x1, x2, bins[1], image.shape[3])
        out[:] = np.einsum("cyx,py,qx->cpq", image[int(roi[0])], rows, columns)
    return {"output": found}


def _shares(start: float, end: float, bins: int, length: int) -> Array:
    """[bins, length]: how much each pixel counts in the mean over a bin, by the trapezoids between its borders."""
    size = max(end - start, 0.0) / bins
    shares = np.zeros((bins, length))
    for k in range(bins):
        low, high = start + k * size, start + (k + 1) * size
        knots = np.unique(np.concatenate([[low, high], np.arange(np.ceil(low), np.floor(high) + 1)]))
        hats = np.maximum(0, 1 - np.abs(knots[:, None] - np.arange(length)))
        if size > 0:
            shares[k] = ((hats[1:] + hats[:-1]) / 2 * np.diff(knots)[:, None]).sum(0) / size
    return shares

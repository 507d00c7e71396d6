"""Boxes and regions of images, written from the definitions that torchvision documents."""

import math
from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.references.gradients import derivatives
from diopi_conformance.references.registry import reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]


@reference_for("diopiNms")
def nms(call: "ReferenceCall") -> Outputs:
    """The surest box first; each takes those that overlap it too much out of the race."""
    boxes = call["boxes"]
    order = torch.argsort(call["confidence"], descending=True, stable=True).tolist()
    kept: list[int] = []
    for candidate in order:
        if not any(_overlap(boxes[candidate], boxes[other]) > call["iou_threshold"] for other in kept):
            kept.append(candidate)
    return {"out": torch.tensor(kept, dtype=torch.int64)}


def _overlap(first: torch.Tensor, second: torch.Tensor) -> float:
    """Intersection over union of two boxes (x1, y1, x2, y2)."""
    sides = (torch.minimum(first[2:], second[2:]) - torch.maximum(first[:2], second[:2])).clamp(min=0)
    areas = [(box[2:] - box[:2]).prod() for box in (first, second)]
    return float(sides.prod() / (areas[0] + areas[1] - sides.prod()))


@reference_for("diopiRoiAlign")
def roi_align(call: "ReferenceCall") -> Outputs:
    return {"out": _aligned(call["input"], call)}


@reference_for("diopiRoiAlignBackward")
def roi_align_backward(call: "ReferenceCall") -> Outputs:
    sizes = [call[name] for name in ("batch_size", "channels", "height", "width")]
    image = torch.zeros(sizes, dtype=call["grad"].dtype, requires_grad=True)
    with torch.enable_grad():
        out = _aligned(image, call)
    (found,) = derivatives(out, (image,), call["grad"])
    return {"out": found}


def _aligned(image: torch.Tensor, call: "ReferenceCall") -> torch.Tensor:
    regions = [_region(image, roi, call) for roi in call["rois"]]
    bins = (image.shape[1], call["pooled_height"], call["pooled_width"])
    return torch.stack(regions) if regions else image.sum() * 0 + image.new_zeros((0, *bins))


def _region(image: torch.Tensor, roi: torch.Tensor, call: "ReferenceCall") -> torch.Tensor:
    """[C, pooled_height, pooled_width]: the mean over each bin's grid of points."""
    shift = 0.5 if call["aligned"] else 0.0
    x1, y1, x2, y2 = (float(n) * call["spatial_scale"] - shift for n in roi[1:])
    height, width = y2 - y1, x2 - x1
    if not call["aligned"]:
        height, width = max(height, 1.0), max(width, 1.0)
    rows = _points(y1, height, call["pooled_height"], call["sampling_ratio"])
    columns = _points(x1, width, call["pooled_width"], call["sampling_ratio"])
    across = _weights(rows, image.shape[2]), _weights(columns, image.shape[3])
    return torch.einsum("chw,ph,qw->cpq", image[int(roi[0])], *across)


def _points(start: float, length: float, bins: int, ratio: int) -> torch.Tensor:
    """[bins, points of a bin]: where along one side the image is read."""
    size = length / bins
    count = ratio if ratio > 0 else max(0, math.ceil(size))  # none where the corners change places
    offsets = (torch.arange(count, dtype=torch.float64) + 0.5) / max(count, 1)
    return start + (torch.arange(bins, dtype=torch.float64)[:, None] + offsets) * size


def _weights(points: torch.Tensor, length: int) -> torch.Tensor:
    """[bins, length]: how much each pixel counts in a bin; points more than a pixel outside count nothing."""
    inside = (points >= -1) & (points <= length)
    places = points.clamp(0, length - 1)[..., None]
    near = (1 - (places - torch.arange(length, dtype=torch.float64)).abs()).clamp(min=0)
    weights: torch.Tensor = (near * inside[..., None]).sum(1) / max(points.shape[1], 1)
    return weights

"""Regions of images pooled without a grid of samples: the greatest pixel, the exact mean, and borders."""

from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.references.gradients import derivatives
from diopi_conformance.references.interpolation import clamped, first_greatest
from diopi_conformance.references.region_sampling import by_regions, stacked
from diopi_conformance.references.registry import reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]


# The greatest pixel: Girshick, Fast R-CNN, section 2.1.


@reference_for("diopiRoiPoolMmcv")
def roi_pool(call: "ReferenceCall") -> Outputs:
    image, bins = call["input"], (call["pooled_height"], call["pooled_width"])
    rows_of, columns_of = (_bin_pixels(call, axis, size) for axis, size in ((1, bins[0]), (0, bins[1])))
    found: dict[str, list[torch.Tensor]] = {"output": [], "argmax": []}
    for roi in call["rois"]:
        planes = image[int(roi[0])]
        cells = [_greatest(planes, rows, columns) for rows in rows_of(roi) for columns in columns_of(roi)]
        for name, values in zip(found, zip(*cells, strict=True), strict=True):
            found[name].append(torch.stack(values, -1).reshape(-1, *bins))
    return {
        "output": stacked(found["output"], image, bins),
        "argmax": torch.stack(found["argmax"]) if found["argmax"] else torch.zeros(0, image.shape[1], *bins).int(),
    }


def _bin_pixels(call: "ReferenceCall", axis: int, bins: int) -> Any:
    """For a roi the pixels of each bin along x (0) or y (1): all that it touches, the roi's last pixel included."""
    length = call["input"].shape[3 - axis]

    def pixels(roi: torch.Tensor) -> list[range]:
        start = roi[1 + axis] * call["spatial_scale"]
        size = ((roi[3 + axis] + 1) * call["spatial_scale"] - start) / bins
        ends = [(start + k * size, start + (k + 1) * size) for k in range(bins)]
        return [range(max(int(a.floor()), 0), min(int(b.ceil()), length)) for a, b in ends]

    return pixels


def _greatest(planes: torch.Tensor, rows: range, columns: range) -> tuple[torch.Tensor, torch.Tensor]:
    """Of each plane, and its position counted row by row."""
    places = torch.tensor([y * planes.shape[2] + x for y in rows for x in columns], dtype=torch.int64)
    if not len(places):
        nothing = planes.sum((1, 2)) * 0
        return nothing, nothing.detach().int() - 1
    pixels = planes.flatten(1)[:, places]
    place = first_greatest(pixels)
    return pixels.gather(1, place)[:, 0], places[place[:, 0]].int()


@reference_for("diopiRoiPoolBackwardMmcv")
def roi_pool_backward(call: "ReferenceCall") -> Outputs:
    assert call.forward is not None
    found = torch.zeros_like(call.forward["input"])
    for roi, places, grad in zip(call["rois"], call["argmax"], call["grad_output"], strict=True):
        places = places.flatten(1).long()
        planes = found[int(roi[0])].flatten(1)  # shares the memory of `found`
        planes.scatter_add_(1, places.clamp(min=0), grad.flatten(1) * (places >= 0))
    return {"grad_input": found}


# The exact mean: Jiang et al., Acquisition of Localization Confidence for Accurate Object Detection, equation 6.


@reference_for("diopiPrroiPoolMmcv")
def prroi_pool(call: "ReferenceCall") -> Outputs:
    return {"output": _means(call, call["rois"])}


def _means(call: "ReferenceCall", rois: torch.Tensor) -> torch.Tensor:
    bins = call["pooled_height"], call["pooled_width"]

    def pool(planes: torch.Tensor, roi: torch.Tensor) -> torch.Tensor:
        x1, y1, x2, y2 = roi[1:] * call["spatial_scale"]
        rows, height = _side(y1, y2, bins[0], planes.shape[1])
        columns, width = _side(x1, x2, bins[1], planes.shape[2])
        if not height * width > 0:
            return planes.new_zeros((planes.shape[0], *bins)) + planes.sum() * 0
        return torch.einsum("cyx,py,qx->cpq", planes, rows, columns) / (height * width)

    return by_regions(call["input"], rois, bins, pool)


def _side(start: torch.Tensor, end: torch.Tensor, bins: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """[bins, length], the integral of each pixel's hat over each bin of a side; and the bins' size."""
    size = (end - start).clamp(min=0) / bins
    borders = start + torch.arange(bins + 1, dtype=torch.float64) * size
    reached = _hat_integral(borders[:, None] - torch.arange(length, dtype=torch.float64))
    return reached[1:] - reached[:-1], size


def _hat_integral(t: torch.Tensor) -> torch.Tensor:
    """Of max(0, 1 - |s|) from minus infinity to `t`."""
    t = t.clamp(-1, 1)
    return torch.where(t < 0, (1 + t) ** 2 / 2, 1 - (1 - t) ** 2 / 2)


@reference_for("diopiPrroiPoolCoorBackwardMmcv")
def prroi_pool_coor_backward(call: "ReferenceCall") -> Outputs:
    rois = call["rois"].clone().requires_grad_(True)
    with torch.enable_grad():
        out = _means(call, rois)
    if not out.requires_grad:  # no region, or none with an area
        return {"grad_rois": torch.zeros_like(rois)}
    (found,) = derivatives(out, (rois,), call["grad_output"])
    return {"grad_rois": found}


# Borders: Qiu et al., BorderDet, section 3.2.


@reference_for("diopiBorderAlignMmcv")
def border_align(call: "ReferenceCall") -> Outputs:
    samples = _border_samples(call["input"], call["boxes"], call["pool_size"])
    place = first_greatest(samples)
    return {"output": samples.gather(-1, place)[..., 0], "argmax_idx": place[..., 0].int()}


@reference_for("diopiBorderAlignBackwardMmcv")
def border_align_backward(call: "ReferenceCall") -> Outputs:
    assert call.forward is not None
    image = torch.zeros_like(call.forward["input"], requires_grad=True)
    with torch.enable_grad():
        samples = _border_samples(image, call["boxes"], call["pool_size"])
        out = samples.gather(-1, call["argmax_idx"].long()[..., None])[..., 0]
    (found,) = derivatives(out, (image,), call["grad_output"])
    return {"grad_input": found}


def _border_samples(image: torch.Tensor, boxes: torch.Tensor, count: int) -> torch.Tensor:
    """[batch, channels / 4, boxes, 4, count + 1]; top and left from the first corner on, the others from the last."""
    along = torch.arange(count + 1, dtype=torch.float64) / count
    x1, y1, x2, y2 = (boxes[..., k, None] for k in range(4))
    across, down = (x2 - x1) * along, (y2 - y1) * along
    still = torch.zeros_like(along)
    borders = ((y1 + still, x1 + across), (y1 + down, x1 + still), (y2 + still, x2 - across), (y2 - down, x2 + still))
    quarters = image.chunk(4, 1)
    return torch.stack(
        [
            torch.stack([clamped(p, y[b], x[b]) for b, p in enumerate(quarter)])
            for quarter, (y, x) in zip(quarters, borders, strict=True)
        ],
        3,
    )

"""Regions of images pooled from bilinear samples: upright, rotated, equivariant to rotation, and deformable."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.references.gradients import derivatives
from diopi_conformance.references.interpolation import average, clamped, first_greatest, grid, spread
from diopi_conformance.references.registry import reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]
Points = tuple[torch.Tensor, torch.Tensor]  # y and x, [rows, columns, points of a bin]
Pool = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def stacked(pooled: list[torch.Tensor], image: torch.Tensor, bins: tuple[int, int]) -> torch.Tensor:
    """The regions of an image [batch, channels, height, width] in one tensor, also where there is none."""
    if pooled:
        return torch.stack(pooled)
    return image.new_zeros((0, image.shape[1], *bins)) + image.sum() * 0


def by_regions(image: torch.Tensor, rois: torch.Tensor, bins: tuple[int, int], pool: Pool) -> torch.Tensor:
    """[rois, channels, *bins]: `pool` of the image that each roi names, and of the roi."""
    return stacked([pool(image[int(roi[0])], roi) for roi in rois], image, bins)


def added_gradient(name: str, call: "ReferenceCall", pooled: Callable[[torch.Tensor], torch.Tensor]) -> Outputs:
    """The tensor `name`, an image's gradient, with what `pooled` of that image hands back of "top_grad" added."""
    before = call[name]
    image = torch.zeros_like(before, requires_grad=True)
    with torch.enable_grad():
        out = pooled(image)
    (found,) = derivatives(out, (image,), call["top_grad"])
    return {name: before + found}


# Upright: He et al., Mask R-CNN, section 3.


def _upright(call: "ReferenceCall", roi: torch.Tensor) -> Points:
    shift = 0.5 if call["aligned"] else 0.0
    x1, y1, x2, y2 = roi[1:] * call["spatial_scale"] - shift
    height, width = y2 - y1, x2 - x1
    if not call["aligned"]:
        height, width = height.clamp(min=1), width.clamp(min=1)
    rows = grid(y1, height, call["aligned_height"], call["sampling_ratio"])
    columns = grid(x1, width, call["aligned_width"], call["sampling_ratio"])
    return spread(rows, columns)


@reference_for("diopiRoiAlignMmcv")
def roi_align(call: "ReferenceCall") -> Outputs:
    bins = call["aligned_height"], call["aligned_width"]
    image, rois = call["input"], call["rois"]
    if call["pool_mode"] == 1:
        pooled = by_regions(image, rois, bins, lambda planes, roi: average(clamped(planes, *_upright(call, roi))))
        return {"output": pooled, "argmax_y": None, "argmax_x": None}
    found: dict[str, list[torch.Tensor]] = {"output": [], "argmax_y": [], "argmax_x": []}
    for roi in rois:
        points = _upright(call, roi)
        samples = clamped(image[int(roi[0])], *points)
        place = first_greatest(samples)
        for name, values in zip(found, (samples, *(p.expand_as(samples) for p in points)), strict=True):
            found[name].append(values.gather(-1, place)[..., 0])
    return {name: stacked(regions, image, bins) for name, regions in found.items()}


@reference_for("diopiRoiAlignBackwardMmcv")
def roi_align_backward(call: "ReferenceCall") -> Outputs:
    """Of maxima by the places that the forward kept, which may be rounded."""
    assert call.forward is not None
    image = torch.zeros_like(call.forward["input"], requires_grad=True)
    bins = call["aligned_height"], call["aligned_width"]
    with torch.enable_grad():
        if call["pool_mode"] == 1:
            out = by_regions(image, call["rois"], bins, lambda p, roi: average(clamped(p, *_upright(call, roi))))
        else:
            regions = zip(call["rois"], call["argmax_y"], call["argmax_x"], strict=True)
            out = stacked([_channelwise(image[int(roi[0])], y, x) for roi, y, x in regions], image, bins)
    (found,) = derivatives(out, (image,), call["grad_output"])
    return {"grad_input": found}


def _channelwise(planes: torch.Tensor, y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Samples of each plane at points of its own."""
    return torch.cat([clamped(planes[c : c + 1], y[c], x[c]) for c in range(planes.shape[0])])


# Rotated: a grid about the centre, turned; y points down.


def _rotated(
    roi: torch.Tensor, call: "ReferenceCall", bins: tuple[int, int], ratio: int, shift: float, least: float
) -> Points:
    x0, y0, width, height = roi[1:5] * call["spatial_scale"]
    height, width = height.clamp(min=least), width.clamp(min=least)
    down, across = spread(grid(-height / 2, height, bins[0], ratio), grid(-width / 2, width, bins[1], ratio))
    angle = -roi[5] if call["clockwise"] else roi[5]
    y = down * angle.cos() - across * angle.sin() + y0 - shift
    x = down * angle.sin() + across * angle.cos() + x0 - shift
    return y, x


def _rotated_aligned(image: torch.Tensor, call: "ReferenceCall") -> torch.Tensor:
    bins = call["aligned_height"], call["aligned_width"]
    shift, least = (0.5, 0.0) if call["aligned"] else (0.0, 1.0)
    ratio = call["sampling_ratio"]
    return by_regions(
        image, call["rois"], bins, lambda p, roi: average(clamped(p, *_rotated(roi, call, bins, ratio, shift, least)))
    )


@reference_for("diopiRoiAlignRotatedMmcv")
def roi_align_rotated(call: "ReferenceCall") -> Outputs:
    return {"output": _rotated_aligned(call["input"], call)}


@reference_for("diopiRoiAlignRotatedBackwardMmcv")
def roi_align_rotated_backward(call: "ReferenceCall") -> Outputs:
    return added_gradient("bottom_grad", call, lambda image: _rotated_aligned(image, call))


# Equivariant to rotation: Han et al., ReDet, section 3.4.


def _turned(image: torch.Tensor, call: "ReferenceCall") -> torch.Tensor:
    bins, count = (call["pooled_height"], call["pooled_width"]), call["num_orientations"]

    def pool(planes: torch.Tensor, roi: torch.Tensor) -> torch.Tensor:
        points = _rotated(roi, call, bins, call["num_samples"], 0.0, 1.0)
        groups = average(clamped(planes, *points)).reshape(-1, count, *bins)
        turn = float(roi[5]) * count / (2 * math.pi)
        whole = math.floor(turn)
        share = turn - whole
        mixed: torch.Tensor = (1 - share) * groups.roll(whole, 1) + share * groups.roll(whole - 1, 1)
        return mixed.reshape(-1, *bins)

    return by_regions(image, call["rois"], bins, pool)


@reference_for("diopiRiroiAlignRotatedMmcv")
def riroi_align_rotated(call: "ReferenceCall") -> Outputs:
    return {"output": _turned(call["features"], call)}


@reference_for("diopiRiroiAlignRotatedBackwardMmcv")
def riroi_align_rotated_backward(call: "ReferenceCall") -> Outputs:
    return added_gradient("bottom_grad", call, lambda image: _turned(image, call))


# Deformable: Dai et al., Deformable Convolutional Networks, section 2.2.


@reference_for("diopiDeformRoiPoolMmcv")
def deform_roi_pool(call: "ReferenceCall") -> Outputs:
    bins = call["pooled_height"], call["pooled_width"]
    offsets = call.get("offset")
    pooled = []
    for index, roi in enumerate(call["rois"]):
        x1, y1, x2, y2 = roi[1:] * call["spatial_scale"] - 0.5
        height, width = y2 - y1, x2 - x1
        rows = grid(y1, height, bins[0], call["sampling_ratio"])
        y, x = spread(rows, grid(x1, width, bins[1], call["sampling_ratio"]))
        if offsets is not None and offsets.numel():
            x = x + call["gamma"] * width * offsets[index, 0][..., None]
            y = y + call["gamma"] * height * offsets[index, 1][..., None]
        pooled.append(average(clamped(call["input"][int(roi[0])], y, x)))
    return {"output": stacked(pooled, call["input"], bins)}

"""Filters that are resampled, biased, turned and sampled along turned boxes, from their published definitions."""

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as nnf

from diopi_conformance.references.gradients import gradients
from diopi_conformance.references.registry import reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]


@reference_for("diopiUpfirdn2dOpMmcv")
def upfirdn2d(call: "ReferenceCall") -> Outputs:
    """Upsampling by zeros, padding, convolution, downsampling."""
    source = call["input"].movedim(-1, 1)
    n, c, h, w = source.shape
    spread = source.new_zeros(n * c, 1, h * call["up_y"], w * call["up_x"])
    spread[:, 0, :: call["up_y"], :: call["up_x"]] = source.flatten(0, 1)
    padded = nnf.pad(spread, [call[name] for name in ("pad_x0", "pad_x1", "pad_y0", "pad_y1")])
    turned = call["kernel"].flip(0, 1)[None, None]
    out = nnf.conv2d(padded, turned, stride=(call["down_y"], call["down_x"]))
    return {"out": out.reshape(n, c, *out.shape[2:]).movedim(1, -1)}


@reference_for("diopiFusedBiasLeakyreluMmcv")
def fused_bias_leakyrelu(call: "ReferenceCall") -> Outputs:
    shifted = call["input"]
    if call.get("bias") is not None:
        shifted = shifted + call["bias"].reshape(-1, *[1] * (shifted.dim() - 2))
    if call["grad"] == 2:
        return {"out": torch.zeros_like(shifted)}
    if call["act"] == 3:
        sign = call.get("refer", torch.zeros_like(shifted)) if call["grad"] == 1 else shifted
        shifted = torch.where(sign > 0, shifted, shifted * call["alpha"])
    return {"out": shifted * call["scale"]}


@reference_for("diopiActiveRotatedFilterMmcv")
def active_rotated_filter(call: "ReferenceCall") -> Outputs:
    return {"output": _all_rotations(call["input"], call["indices"])}


def _all_rotations(filters: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """The element at `e` goes, in the rotation `r`, to the place `indices`[e, r], counted from 1."""
    planes, inputs, orientations, height, width = filters.shape
    elements, places = filters.flatten(2), indices.flatten(0, 2).long() - 1
    turned = []
    for place in places.T:
        turned.append(torch.zeros_like(elements).index_copy(2, place, elements))
    stacked = torch.stack(turned, 1)  # [planes, rotations, inputs, elements]
    return stacked.reshape(planes * len(turned), inputs * orientations, height, width)


@reference_for("diopiActiveRotatedFilterBackwardMmcv")
def active_rotated_filter_backward(call: "ReferenceCall") -> Outputs:
    grad, indices = call["grad_out"], call["indices"]
    orientations, rotations = indices.shape[0], indices.shape[3]
    shape = (grad.shape[0] // rotations, grad.shape[1] // orientations, orientations, *grad.shape[2:])
    (found,) = gradients(lambda filters: _all_rotations(filters, indices), [grad.new_zeros(shape)], grad)
    return {"grad_in": found}


@reference_for("diopiRotatedFeatureAlignMmcv")
def rotated_feature_align(call: "ReferenceCall") -> Outputs:
    return {"output": _aligned(call["features"], call)}


@reference_for("diopiRotatedFeatureAlignBackwardMmcv")
def rotated_feature_align_backward(call: "ReferenceCall") -> Outputs:
    (found,) = gradients(lambda features: _aligned(features, call), [call["top_grad"]], call["top_grad"])
    return {"bottom_grad": found}


def _aligned(features: torch.Tensor, call: "ReferenceCall") -> torch.Tensor:
    """Each pixel and the bilinear samples at its box, [n, c, h, w]; boxes are [n, h, w, 5]."""
    rows, columns = box_points(call["best_bboxes"], call["spatial_scale"], call["points"])
    height, width = features.shape[2:]
    inside = (rows >= -1) & (rows <= height) & (columns >= -1) & (columns <= width)
    down, across = _near(rows, height) * inside[..., None], _near(columns, width)
    return features + torch.einsum("nhwpy,nhwpx,ncyx->nchw", down, across, features)


def box_points(boxes: torch.Tensor, scale: float, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows and columns, [n, h, w, count], of the centre of each box and, for a `count` of 5, of its corners."""
    y, x, width, height = (boxes[..., i, None] * scale for i in range(4))
    if count == 1:
        return y, x
    angle = boxes[..., 4, None]
    along = torch.tensor([0, 1, -1, -1, 1]) * width / 2
    aside = torch.tensor([0, 1, 1, -1, -1]) * height / 2
    return y + along * angle.sin() + aside * angle.cos(), x + along * angle.cos() - aside * angle.sin()


def _near(places: torch.Tensor, length: int) -> torch.Tensor:
    """How much each of `length` pixels counts at `places`, in a new last dimension; outside it is the border's."""
    clamped = places.clamp(0, length - 1)[..., None]
    weights: torch.Tensor = (1 - (clamped - torch.arange(length, dtype=places.dtype)).abs()).clamp(min=0)
    return weights

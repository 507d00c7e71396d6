"""Convolutions and attention that sample where offsets lead, with zeros outside of the image."""

from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.references.gradients import derivatives
from diopi_conformance.references.interpolation import padded
from diopi_conformance.references.registry import SCRATCH, reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]
Pair = tuple[int, int]  # rows, columns

_V1 = {"stride": "dH dW", "padding": "padH padW", "dilation": "dilationH dilationW"}
_V2 = {"stride": "stride_h stride_w", "padding": "pad_h pad_w", "dilation": "dilation_h dilation_w"}


def _geometry(call: "ReferenceCall", names: dict[str, str]) -> dict[str, Pair]:
    pairs = {key: text.split() for key, text in names.items()}
    return {key: (call[rows], call[columns]) for key, (rows, columns) in pairs.items()}


def deformed(
    image: torch.Tensor,
    weight: torch.Tensor,
    offset: torch.Tensor,
    mask: torch.Tensor | None,
    groups: int,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
) -> torch.Tensor:
    """[batch, out channels, rows, columns], by Zhu et al., Deformable ConvNets v2, equation 1.

    `offset` is [batch, parts * kernel elements * 2, rows, columns], y before x; `mask` has one value for each two.
    """
    kernel = weight.shape[2], weight.shape[3]
    area = (offset.shape[2], offset.shape[3])
    rows, columns = (_reads(area[d], kernel[d], stride[d], padding[d], dilation[d]) for d in (0, 1))
    shifts = offset.reshape(offset.shape[0], -1, *kernel, 2, *area)
    y = shifts[:, :, :, :, 0] + rows[:, None, :, None]
    x = shifts[:, :, :, :, 1] + columns[None, :, None, :]
    parts = image.chunk(y.shape[1], 1)
    taken = torch.stack(
        [
            torch.cat([padded(part[b], y[b, p], x[b, p]) * _factor(mask, b, p, y) for p, part in enumerate(parts)])
            for b in range(image.shape[0])
        ]
    )  # [batch, channels, kernel rows, kernel columns, rows, columns]
    pairs = zip(taken.chunk(groups, 1), weight.chunk(groups, 0), strict=True)
    return torch.cat([torch.einsum("bcijyx,ocij->boyx", samples, kernels) for samples, kernels in pairs], 1)


def _reads(count: int, kernel: int, stride: int, padding: int, dilation: int) -> torch.Tensor:
    """[kernel, count]: where each element of the kernel reads for each result, along one side."""
    return torch.arange(kernel)[:, None] * dilation + torch.arange(count) * stride - padding


def _factor(mask: torch.Tensor | None, b: int, p: int, y: torch.Tensor) -> torch.Tensor | float:
    return 1.0 if mask is None else mask[b].reshape(y.shape[1:])[p]


def _convolved(call: "ReferenceCall", image: torch.Tensor, weight: torch.Tensor, offset: torch.Tensor) -> torch.Tensor:
    return deformed(image, weight, offset, None, call["groups"], **_geometry(call, _V1))


@reference_for("diopiDeformConvMmcv")
def deform_conv(call: "ReferenceCall") -> Outputs:
    out = _convolved(call, call["input"], call["weight"], call["offset"])
    return {"output": out, "columns": SCRATCH, "ones": SCRATCH}


@reference_for("diopiDeformConvBackwardInputMmcv")
def deform_conv_backward_input(call: "ReferenceCall") -> Outputs:
    image, offset = (call[name].clone().requires_grad_(True) for name in ("input", "offset"))
    with torch.enable_grad():
        out = _convolved(call, image, call["weight"], offset)
    found = derivatives(out, (image, offset), call["gradOutput"])
    return dict(zip(("gradInput", "gradOffset"), found, strict=True))


@reference_for("diopiDeformConvBackwardParametersMmcv")
def deform_conv_backward_parameters(call: "ReferenceCall") -> Outputs:
    """The convolution is linear in its weight: the gradient is the same at zero."""
    sizes = call["gradOutput"].shape[1], call["input"].shape[1] // call["groups"], call["kH"], call["kW"]
    weight = torch.zeros(sizes, dtype=torch.float64, requires_grad=True)
    with torch.enable_grad():
        out = _convolved(call, call["input"], weight, call["offset"])
    (found,) = derivatives(out, (weight,), call["gradOutput"])
    return {"gradWeight": found * call["scale"]}


@reference_for("diopiModulatedDeformConvMmcv")
def modulated_deform_conv(call: "ReferenceCall") -> Outputs:
    image, weight, offset, mask = (call[name] for name in ("input", "weight", "offset", "mask"))
    out = deformed(image, weight, offset, mask, call["group"], **_geometry(call, _V2))
    if call["with_bias"]:
        out = out + call["bias"][:, None, None]
    return {"output": out, "columns": SCRATCH, "ones": SCRATCH}


@reference_for("diopiMsDeformAttnMmcv")
def ms_deform_attn(call: "ReferenceCall") -> Outputs:
    """Zhu et al., Deformable DETR, equation 3."""
    value, places, weights = call["value"], call["sampling_loc"], call["attn_weight"]
    total = value.new_zeros(value.shape[0], value.shape[2], value.shape[3], places.shape[1])  # queries last
    levels = zip(call["spatial_shapes"].tolist(), call["level_start_index"].tolist(), strict=True)
    for level, ((height, width), start) in enumerate(levels):
        maps = value[:, start : start + height * width].permute(0, 2, 3, 1).unflatten(-1, (height, width))
        x, y = (places[:, :, :, level, :, d] * size - 0.5 for d, size in ((0, width), (1, height)))
        found = torch.stack(
            [
                torch.stack([padded(maps[b, h], y[b, :, h], x[b, :, h]) for h in range(value.shape[2])])
                for b in range(value.shape[0])
            ]
        )  # [batch, heads, channels, queries, points]
        total = total + (found * weights[:, :, :, level].permute(0, 2, 1, 3)[:, :, None]).sum(-1)
    return {"out": total.permute(0, 3, 1, 2).flatten(2)}

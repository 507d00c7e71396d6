"""Feature maps taken apart and put together, from the definitions of the papers and of mmcv's documentation."""

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as nnf

from diopi_conformance.references.gradients import gradients
from diopi_conformance.references.registry import SCRATCH, reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]


def _reassembled(features: torch.Tensor, masks: torch.Tensor, call: "ReferenceCall") -> torch.Tensor:
    """CARAFE: each pixel is the weighted sum of the window around its source; groups of channels share the weights."""
    size, groups, factor = (call[name] for name in ("kernel_size", "group_size", "scale_factor"))
    n, c, h, w = features.shape
    windows = nnf.unfold(features, size, padding=size // 2).reshape(n, groups, c // groups, size * size, h, w)
    near = windows.repeat_interleave(factor, -2).repeat_interleave(factor, -1)
    weights = masks.reshape(n, groups, 1, size * size, h * factor, w * factor)
    return (near * weights).sum(3).reshape(n, c, h * factor, w * factor)


@reference_for("diopiCarafeMmcv")
def carafe(call: "ReferenceCall") -> Outputs:
    output = _reassembled(call["features"], call["masks"], call)
    rfeatures = call["features"].permute(0, 2, 3, 1)
    return {"rfeatures": rfeatures, "routput": SCRATCH, "rmasks": SCRATCH, "output": output}


@reference_for("diopiCarafeNaiveMmcv")
def carafe_naive(call: "ReferenceCall") -> Outputs:
    return {"output": _reassembled(call["features"], call["masks"], call)}


@reference_for("diopiCarafeBackwardMmcv", "diopiCarafeNaiveBackwardMmcv")
def carafe_backward(call: "ReferenceCall") -> Outputs:
    kept = call.get("rfeatures")
    features = call["features"] if kept is None else kept.permute(0, 3, 1, 2)
    inputs = (features, call["masks"])
    grads = gradients(lambda source, masks: _reassembled(source, masks, call), inputs, call["top_grad"])
    found: Outputs = dict(zip(("bottom_grad", "mask_grad"), grads, strict=True))
    if kept is not None:
        found |= dict.fromkeys(("rtop_grad", "rbottom_grad_hs", "rbottom_grad", "rmask_grad"), SCRATCH)
    return found


@reference_for("diopiCorrelationMmcv")
def correlation(call: "ReferenceCall") -> Outputs:
    """Products of the two maps, one of them shifted, summed over channels and windows."""
    dilation = call["dilation_patchH"], call["dilation_patchW"]
    patch = call["patchH"], call["patchW"]
    rim = (call["padW"], call["padW"], call["padH"], call["padH"])
    first, second = (nnf.pad(call[name], rim) for name in ("input1", "input2"))
    margin = [d * (n - 1) for d, n in zip(dilation, patch, strict=True)]
    wide = nnf.pad(second, (margin[1], margin[1], margin[0], margin[0]))
    height, width = first.shape[2:]
    ones = first.new_ones(1, 1, call["kH"], call["kW"])
    shifts = []
    for i in range(patch[0]):
        for j in range(patch[1]):
            top, left = (m + k * d - m // 2 for m, k, d in zip(margin, (i, j), dilation, strict=True))
            product = (first * wide[:, :, top : top + height, left : left + width]).sum(1, keepdim=True)
            stride, spread = (call["dH"], call["dW"]), (call["dilationH"], call["dilationW"])
            shifts.append(nnf.conv2d(product, ones, stride=stride, dilation=spread))
    return {"output": torch.stack(shifts, 1).reshape(-1, *patch, *shifts[0].shape[2:])}


@reference_for("diopiMaskedIm2colMmcv")
def masked_im2col(call: "ReferenceCall") -> Outputs:
    rim = (call["pad_w"], call["pad_w"], call["pad_h"], call["pad_h"])
    image, rows, columns = nnf.pad(call["im"][0], rim), call["mask_h_idx"], call["mask_w_idx"]
    pixels = [image[:, rows + i, columns + j] for i in range(call["kernel_h"]) for j in range(call["kernel_w"])]
    return {"col": torch.stack(pixels, 1).flatten(0, 1)}


@reference_for("diopiMaskedCol2imMmcv")
def masked_col2im(call: "ReferenceCall") -> Outputs:
    image = call["col"].new_zeros(1, call["channels"], call["height"], call["width"])
    image[0, :, call["mask_h_idx"], call["mask_w_idx"]] = call["col"]
    return {"im": image}


@reference_for("diopiPsamaskMmcv")
def psamask(call: "ReferenceCall") -> Outputs:
    """The mask of a pixel, centred on it, says how much it collects from, or gives to, every other pixel."""
    height, width = call["h_feature"], call["w_feature"]
    places = []  # of the mask, of the pixel that has it, and of the other one
    for h, w, y, x in torch.cartesian_prod(*map(torch.arange, (height, width, height, width))).tolist():
        row, column = y - h + call["half_h_mask"], x - w + call["half_w_mask"]
        if 0 <= row < call["h_mask"] and 0 <= column < call["w_mask"]:
            places.append((row * call["w_mask"] + column, h, w, y, x))
    mask, h, w, y, x = torch.tensor(places).T
    out = call["input"].new_zeros(call["num_"], height * width, height, width)
    if call["psa_type"] == 0:
        out[:, y * width + x, h, w] = call["input"][:, mask, h, w]
    else:
        out[:, h * width + w, y, x] = call["input"][:, mask, h, w]
    return {"output": out}


@reference_for("diopiTinShiftMmcv")
def tin_shift(call: "ReferenceCall") -> Outputs:
    source, shift = call["input"], call["shift"]
    length, groups = source.shape[1], shift.shape[1]
    split = source.reshape(*source.shape[:2], groups, -1, source.shape[3])
    out = torch.zeros_like(split)
    for b, row in enumerate(shift.tolist()):
        for g, steps in enumerate(row):
            if abs(steps) < length:
                kept = split[b, max(0, -steps) : length - max(0, steps), g]
                out[b, max(0, steps) : length + min(0, steps), g] = kept
    return {"output": out.reshape(source.shape)}

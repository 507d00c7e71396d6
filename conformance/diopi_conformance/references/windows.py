"""Convolutions and poolings as PyTorch's functional layer computes them, where no single operator does."""

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as nnf

from diopi_conformance.references.registry import reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]

_MAX_POOL: dict[int, Any] = {
    1: torch.max_pool1d_with_indices,
    2: nnf.max_pool2d_with_indices,
    3: nnf.max_pool3d_with_indices,
}
_ADAPTIVE_MAX = {1: nnf.adaptive_max_pool1d, 2: nnf.adaptive_max_pool2d, 3: nnf.adaptive_max_pool3d}
_ADAPTIVE_AVERAGE = {1: nnf.adaptive_avg_pool1d, 2: nnf.adaptive_avg_pool2d, 3: nnf.adaptive_avg_pool3d}
_AVERAGE: dict[int, Any] = {1: nnf.avg_pool1d, 2: nnf.avg_pool2d, 3: nnf.avg_pool3d}


@reference_for("diopiConvolution3d")
def convolution3d(call: "ReferenceCall") -> Outputs:
    given = (call[name] for name in ("stride", "padding", "dilation", "groups"))
    return {"out": nnf.conv3d(call["input"], call["weight"], call.get("bias"), *given)}


@reference_for("diopiConvTranspose2d", "diopiConvTranspose3d")
def conv_transpose(call: "ReferenceCall") -> Outputs:
    compute = nnf.conv_transpose2d if call.function.symbol.endswith("2d") else nnf.conv_transpose3d
    given = (call[name] for name in ("stride", "padding", "output_padding", "groups", "dilation"))
    return {"out": compute(call["input"], call["weight"], call.get("bias"), *given)}


@reference_for("diopiMaxPool1d", "diopiMaxPool1dWithIndices", "diopiMaxPool3d")
def max_pool(call: "ReferenceCall") -> Outputs:
    return _pooled(call, _max_pool(call, call["kernel_size"]))


@reference_for("diopiAvgPool1d")
def average_pool(call: "ReferenceCall") -> Outputs:
    given = (call[name] for name in ("padding", "ceil_mode", "count_include_pad"))
    return {"out": nnf.avg_pool1d(call["input"], call["kernel_size"], call["stride"] or call["kernel_size"], *given)}


@reference_for(
    "diopiAdaptiveMaxPool1d", "diopiAdaptiveMaxPool1dWithIndices", "diopiAdaptiveMaxPool2d", "diopiAdaptiveMaxPool3d"
)
def adaptive_max_pool(call: "ReferenceCall") -> Outputs:
    return _pooled(call, _ADAPTIVE_MAX[_rank(call)](call["input"], call["output_size"], return_indices=True))


@reference_for("diopiAdaptiveAvgPool1d")
def adaptive_average_pool(call: "ReferenceCall") -> Outputs:
    return {"out": nnf.adaptive_avg_pool1d(call["input"], call["output_size"])}


@reference_for("diopiPool1d", "diopiPool2d", "diopiPool3d")
def pool(call: "ReferenceCall") -> Outputs:
    """A maximum or an average, over windows of a size or for a size."""
    rank, source = _rank(call), call["input"]
    greatest = call["mode"] == "max"
    if call["adaptive"]:
        compute = _ADAPTIVE_MAX if greatest else _ADAPTIVE_AVERAGE
        return {"out": compute[rank](source, call["output_size"])}
    if greatest:
        return {"out": _max_pool(call, call["ksize"])[0]}
    padding, ceil_mode, included = call["padding"], call["ceil_mode"], not call["exclusive"]
    return {"out": _AVERAGE[rank](source, call["ksize"], call["stride"] or call["ksize"], padding, ceil_mode, included)}


def _max_pool(call: "ReferenceCall", kernel: Any) -> tuple[torch.Tensor, torch.Tensor]:
    given = (call[name] for name in ("padding", "dilation", "ceil_mode"))
    out, indices = _MAX_POOL[_rank(call)](call["input"], kernel, call["stride"] or kernel, *given)
    return out, indices


def _rank(call: "ReferenceCall") -> int:
    """How many dimensions have windows: the digit in the name."""
    return next(int(c) for c in call.function.symbol if c.isdigit())


def _pooled(call: "ReferenceCall", found: tuple[torch.Tensor, torch.Tensor]) -> Outputs:
    names = [p.name for p in call.function.params if p.role == "out"]
    return dict(zip(names, found, strict=False))

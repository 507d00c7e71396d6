"""Convolutions and pooling over the voxels that hold anything: sums along pairs of rows, by SECOND's definition."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.references.gradients import gradients
from diopi_conformance.references.registry import reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]


def _pairs(call: "ReferenceCall", inverse: bool = False) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """For each element of the kernel the rows that are read, and the rows that they are added to."""
    for pairs, count in zip(call["indicePairs"].long(), call["indiceNum"].tolist(), strict=True):
        sources, targets = pairs[:, :count]
        yield (targets, sources) if inverse else (sources, targets)


@reference_for("diopiIndiceMaxpoolMmcv")
def indice_maxpool(call: "ReferenceCall") -> Outputs:
    features = call["features"]
    out = features.new_zeros(call["numAct"], features.shape[1])
    for sources, targets in _pairs(call):
        out[targets] = torch.maximum(out[targets], features[sources])
    return {"out": out}


@reference_for("diopiIndiceMaxpoolBackwardMmcv")
def indice_maxpool_backward(call: "ReferenceCall") -> Outputs:
    features, found = call["features"], torch.zeros_like(call["features"])
    for sources, targets in _pairs(call):
        equal = features[sources] == call["outFeatures"][targets]
        found.index_add_(0, sources, equal * call["outGrad"][targets])
    return {"out": found}


def _convolved(features: torch.Tensor, filters: torch.Tensor, call: "ReferenceCall", rows: int) -> torch.Tensor:
    """[rows, out]; with `_subM` the element of the kernel with most pairs is the middle, which leads each to itself."""
    matrices = filters.flatten(0, -3)
    out = features.new_zeros(rows, filters.shape[-1])
    middle = int(call["indiceNum"].argmax()) if call["_subM"] else -1
    for i, (sources, targets) in enumerate(_pairs(call, bool(call["_inverse"]))):
        if i == middle:
            sources = targets = torch.arange(rows)
        out = out.index_add(0, targets, features[sources] @ matrices[i])
    return out


@reference_for("diopiIndiceConvMmcv")
def indice_conv(call: "ReferenceCall") -> Outputs:
    return {"out": _convolved(call["features"], call["filters"], call, call["numActOut"])}


@reference_for("diopiFusedIndiceConvBatchnormMmcv")
def fused_indice_conv_batchnorm(call: "ReferenceCall") -> Outputs:
    return {"out": _convolved(call["features"], call["filters"], call, call["numActOut"]) + call["bias"]}


@reference_for("diopiIndiceConvBackwardMmcv")
def indice_conv_backward(call: "ReferenceCall") -> Outputs:
    rows, inputs = len(call["outGrad"]), (call["features"], call["filters"])
    found = gradients(lambda features, filters: _convolved(features, filters, call, rows), inputs, call["outGrad"])
    return {"outlist": list(found)}

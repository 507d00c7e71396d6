"""Focal losses of classes: Lin et al., Focal Loss for Dense Object Detection, equation 5; and their derivatives."""

from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.references.registry import SCRATCH, reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]


def _row_weights(call: "ReferenceCall") -> torch.Tensor:
    """[rows]: the weight of each row's target."""
    weight, target = call.get("weight"), call["target"]
    return torch.ones(target.shape, dtype=torch.float64) if weight is None or not weight.numel() else weight[target]


@reference_for("diopiSigmoidFocalLossMmcv")
def sigmoid_focal_loss(call: "ReferenceCall") -> Outputs:
    return {"output": _by_class(call, call["input"])}


@reference_for("diopiSigmoidFocalLossBackwardMmcv")
def sigmoid_focal_loss_backward(call: "ReferenceCall") -> Outputs:
    leaf = call["input"].clone().requires_grad_(True)
    with torch.enable_grad():
        out = _by_class(call, leaf).sum()
    (found,) = torch.autograd.grad(out, leaf)
    return {"grad_input": found}


def _by_class(call: "ReferenceCall", source: torch.Tensor) -> torch.Tensor:
    true = call["target"][:, None] == torch.arange(source.shape[1])
    side = torch.where(true, source, -source)
    factor = torch.where(true, call["alpha"], 1 - call["alpha"]) * _row_weights(call)[:, None]
    focus = torch.sigmoid(-side) ** call["gamma"]
    loss: torch.Tensor = -factor * focus * torch.nn.functional.logsigmoid(side)
    return loss


@reference_for("diopiSoftmaxFocalLossMmcv")
def softmax_focal_loss(call: "ReferenceCall") -> Outputs:
    return {"output": _of_targets(call, call["softmax"])}


@reference_for("diopiSoftmaxFocalLossBackwardMmcv")
def softmax_focal_loss_backward(call: "ReferenceCall") -> Outputs:
    """By way of the softmax: its derivative by the logits at p is p_i (i == j) - p_i p_j."""
    leaf = call["softmax"].clone().requires_grad_(True)
    with torch.enable_grad():
        out = _of_targets(call, leaf).sum()
    (by_softmax,) = torch.autograd.grad(out, leaf)
    along = (by_softmax * call["softmax"]).sum(1, keepdim=True)
    return {"grad_input": call["softmax"] * (by_softmax - along), "buff": SCRATCH}


def _of_targets(call: "ReferenceCall", softmax: torch.Tensor) -> torch.Tensor:
    chosen = softmax.gather(1, call["target"][:, None])[:, 0]
    loss: torch.Tensor = -call["alpha"] * (1 - chosen) ** call["gamma"] * chosen.log() * _row_weights(call)
    return loss

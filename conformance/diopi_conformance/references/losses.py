"""Losses, by PyTorch's functional layer, which takes targets of any rank."""

from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.references.registry import reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]


@reference_for("diopiNLLLoss")
def nll_loss(call: "ReferenceCall") -> Outputs:
    return {"out": _nll(call)}


@reference_for("diopiNLLLossV2")
def nll_loss_v2(call: "ReferenceCall") -> Outputs:
    """The total weight is what a mean divides by: the weights of the targets that count."""
    counted = call["target"] != call["ignore_index"]
    weight = call.get("weight")
    classes = call["input"].shape[min(1, call["input"].dim() - 1)]
    weights = torch.ones(classes, dtype=torch.float64) if weight is None else weight
    total = weights[call["target"][counted]].sum()
    if call["reduction"] == "none":
        total = torch.zeros_like(total)
    return {"out": _nll(call), "totalWeight": total}


def _nll(call: "ReferenceCall") -> torch.Tensor:
    return torch.nn.functional.nll_loss(
        call["input"],
        call["target"],
        call.get("weight"),
        ignore_index=call["ignore_index"],
        reduction=call["reduction"],
    )


@reference_for("diopiCrossEntropyLoss")
def cross_entropy_loss(call: "ReferenceCall") -> Outputs:
    out = torch.nn.functional.cross_entropy(
        call["input"],
        call["target"],
        call.get("weight"),
        ignore_index=call["ignore_index"],
        reduction=call["reduction"],
        label_smoothing=call["label_smoothing"],
    )
    return {"out": out}


@reference_for("diopiBCELossBackward")
def bce_loss_backward(call: "ReferenceCall") -> Outputs:
    """PyTorch's own bound of the divisor is a float32, too rough for inputs of exactly 0 or 1 in float64."""
    inputs = call["input"]
    gradient = call["grad_output"] * (inputs - call["target"]) / (inputs * (1 - inputs)).clamp_min(1e-12)
    if call.get("weight") is not None:
        gradient = gradient * call["weight"]
    return {"grad_input": gradient / inputs.numel() if call["reduction"] == "mean" else gradient}


@reference_for("diopiSigmoidFocalLoss")
def sigmoid_focal_loss(call: "ReferenceCall") -> Outputs:
    return {"out": _focal(call["inputs"], call["targets"], call)}


@reference_for("diopiSigmoidFocalLossBackward")
def sigmoid_focal_loss_backward(call: "ReferenceCall") -> Outputs:
    leaf = call["input"].clone().requires_grad_(True)
    with torch.enable_grad():
        out = _focal(leaf, call["target"], call)
    (found,) = torch.autograd.grad(out, leaf, call["grad_output"])
    return {"grad_input": found}


def _focal(inputs: torch.Tensor, targets: torch.Tensor, call: "ReferenceCall") -> torch.Tensor:
    """Lin et al., Focal Loss for Dense Object Detection, equation 5."""
    probability = torch.sigmoid(inputs)
    loss: torch.Tensor = torch.nn.functional.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    missed = probability * (1 - targets) + (1 - probability) * targets
    loss = loss * missed ** call["gamma"]
    if call["alpha"] >= 0:
        loss = loss * (call["alpha"] * targets + (1 - call["alpha"]) * (1 - targets))
    if call["reduction"] == "none":
        return loss
    return loss.mean() if call["reduction"] == "mean" else loss.sum()


@reference_for("diopiCTCLoss")
def ctc_loss(call: "ReferenceCall") -> Outputs:
    lengths = call["input_lengths"], call["target_lengths"]
    parts = torch.ops.aten._ctc_loss.Tensor(
        call["log_probs"], call["targets"], *lengths, call["blank"], call["zero_infinity"]
    )
    out = torch.nn.functional.ctc_loss(
        call["log_probs"],
        call["targets"],
        *lengths,
        blank=call["blank"],
        reduction=call["reduction"],
        zero_infinity=call["zero_infinity"],
    )
    return {"out": out, "neg_log_likelihood": parts[0], "log_alpha": parts[1]}

"""Losses, by PyTorch's functional layer, which takes targets of any rank."""

from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.references.registry import reference_for

if TYPE_CHECKING:
    from diopi_conformance.reference import Call

Outputs = dict[str, Any]


@reference_for("diopiNLLLoss")
def nll_loss(call: "Call") -> Outputs:
    return {"out": _nll(call)}


@reference_for("diopiNLLLossV2")
def nll_loss_v2(call: "Call") -> Outputs:
    """The total weight is what a mean divides by: the weights of the targets that count."""
    counted = call["target"] != call["ignore_index"]
    weight = call.get("weight")
    weights = torch.ones(call["input"].shape[1], dtype=torch.float64) if weight is None else weight
    total = weights[call["target"][counted]].sum()
    if call["reduction"] == "none":
        total = torch.zeros_like(total)
    return {"out": _nll(call), "totalWeight": total}


def _nll(call: "Call") -> torch.Tensor:
    return torch.nn.functional.nll_loss(
        call["input"],
        call["target"],
        call.get("weight"),
        ignore_index=call["ignore_index"],
        reduction=call["reduction"],
    )


@reference_for("diopiCrossEntropyLoss")
def cross_entropy_loss(call: "Call") -> Outputs:
    out = torch.nn.functional.cross_entropy(
        call["input"],
        call["target"],
        call.get("weight"),
        ignore_index=call["ignore_index"],
        reduction=call["reduction"],
        label_smoothing=call["label_smoothing"],
    )
    return {"out": out}

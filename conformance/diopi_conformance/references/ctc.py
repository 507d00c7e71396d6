"""The gradient of the connectionist temporal classification loss."""

from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.references.registry import reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]


@reference_for("diopiCTCLossBackward")
def ctc_loss_backward(call: "ReferenceCall") -> Outputs:
    """Graves et al., Connectionist Temporal Classification, equation 16: by what the softmax was taken of.

    Takes no part of the loss that was kept: the forward and backward variables are computed anew.
    """
    lengths = call["target_lengths"].clamp(min=1)
    share = torch.ones(lengths.shape, dtype=torch.float64)
    if call["reduction"] == "mean":
        share = 1 / (lengths * len(lengths)).double()
    grad = call["grad_output"] * share
    leaf = call["log_probs"].clone().requires_grad_(True)
    with torch.enable_grad():
        losses = torch.nn.functional.ctc_loss(
            leaf,
            call["targets"],
            call["input_lengths"],
            call["target_lengths"],
            blank=call["blank"],
            reduction="none",
            zero_infinity=call["zero_infinity"],
        )
    (found,) = torch.autograd.grad(losses, leaf, grad)
    return {"grad_input": found}

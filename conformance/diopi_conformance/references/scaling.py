"""Gradient scaling for mixed precision, in float64, where PyTorch's own operators take float32 only."""

from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.references.registry import reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]


@reference_for("diopiAmpForeachNonFiniteCheckAndUnscaleInp")
def unscale(call: "ReferenceCall") -> Outputs:
    """`found_inf` becomes 1 if any gradient is not finite, and stays as it was otherwise."""
    grads = call["scaled_grads"]
    finite = all(bool(torch.isfinite(grad).all()) for grad in grads)
    found = call["found_inf"] if finite else torch.ones_like(call["found_inf"])
    return {"scaled_grads": [grad * call["inv_scale"] for grad in grads], "found_inf": found}


@reference_for("diopiAmpUpdateScaleInp")
def update_scale(call: "ReferenceCall") -> Outputs:
    """The scale shrinks after a step that was not finite and grows after enough that were."""
    scale, tracker = call["current_scale"], call["growth_tracker"]
    if bool(call["found_inf"].any()):
        return {"current_scale": scale * call["scale_backoff_factor"], "growth_tracker": torch.zeros_like(tracker)}
    if int(tracker) + 1 == call["growth_interval"]:
        grown = scale * call["scale_growth_factor"]
        kept = grown if bool(grown.float().isfinite().all()) else scale  # scales are float32
        return {"current_scale": kept, "growth_tracker": torch.zeros_like(tracker)}
    return {"current_scale": scale, "growth_tracker": tracker + 1}

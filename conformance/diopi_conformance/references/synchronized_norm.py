"""The steps of mmcv's batch norm over several devices; tensors are [batch, channels, elements]."""

from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.references.registry import reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]


@reference_for("diopiSyncBnMeanMmcv")
def sync_bn_mean(call: "ReferenceCall") -> Outputs:
    return {"mean": call["input"].mean((0, 2))}


@reference_for("diopiSyncBnVarMmcv")
def sync_bn_var(call: "ReferenceCall") -> Outputs:
    return {"var": (call["input"] - call["mean"][:, None]).square().mean((0, 2))}


@reference_for("diopiSyncBnOutputMmcv")
def sync_bn_output(call: "ReferenceCall") -> Outputs:
    """Devices of a group see equally many elements, which the unbiased variance counts together."""
    source, mean, var, rate = (call[name] for name in ("input", "mean", "var", "momentum"))
    std = torch.sqrt(var + call["eps"])
    norm = (source - mean[:, None]) / std[:, None]
    found = {"norm": norm, "std": std, "output": norm * call["weight"][:, None] + call["bias"][:, None]}
    count = source.shape[0] * source.shape[2] * call["group_size"]
    unbiased = var * count / (count - 1) if count > 1 else var
    for name, value in (("running_mean", mean), ("running_var", unbiased)):
        if call.get(name) is not None:
            found[name] = rate * value + (1 - rate) * call[name]
    return found


@reference_for("diopiSyncBnBackwardParamMmcv")
def sync_bn_backward_param(call: "ReferenceCall") -> Outputs:
    grad = call["grad_output"]
    return {"grad_weight": (grad * call["norm"]).sum((0, 2)), "grad_bias": grad.sum((0, 2))}


@reference_for("diopiSyncBnBackwardDataMmcv")
def sync_bn_backward_data(call: "ReferenceCall") -> Outputs:
    grad, norm = call["grad_output"], call["norm"]
    of_channels = {name: call[name][:, None] for name in ("weight", "grad_weight", "grad_bias", "std")}
    shared = (of_channels["grad_weight"] * norm + of_channels["grad_bias"]) / (grad.shape[0] * grad.shape[2])
    return {"grad_input": of_channels["weight"] * (grad - shared) / of_channels["std"]}

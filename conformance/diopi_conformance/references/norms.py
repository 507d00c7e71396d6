"""Normalizations by their formulas: the steps of a batch norm over several devices, and norms of groups and axes."""

from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.references.registry import reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]


def _channelwise(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """One value for each channel, in the shape that broadcasts over `like`."""
    return values.reshape([-1 if d == 1 else 1 for d in range(like.dim())])


def _all_but(source: torch.Tensor, *kept: int) -> list[int]:
    return [d for d in range(source.dim()) if d not in kept]


def _scaled(call: "ReferenceCall", normalized: torch.Tensor, weight: str = "weight") -> torch.Tensor:
    """`normalized` times the weight plus the bias of its channel, where they are given."""
    if call.get(weight) is not None:
        normalized = normalized * _channelwise(call[weight], normalized)
    if call.get("bias") is not None:
        normalized = normalized + _channelwise(call["bias"], normalized)
    return normalized


@reference_for("diopiBatchNormStats")
def batch_norm_stats(call: "ReferenceCall") -> Outputs:
    source = call["input"]
    variance, mean = torch.var_mean(source, _all_but(source, 1), correction=0)
    return {"mean": mean, "invstd": torch.rsqrt(variance + call["eps"])}


@reference_for("diopiBatchNormGatherStatsWithCounts")
def batch_norm_gather(call: "ReferenceCall") -> Outputs:
    """Squared deviations add up: those of each device about its own mean, and of the means about the common one."""
    counts = call["counts"][:, None]
    total = counts.sum()
    mean = (counts * call["mean_all"]).sum(0) / total
    variances = call["invstd_all"] ** -2 - call["eps"]
    squares = (counts * (variances + (call["mean_all"] - mean) ** 2)).sum(0)
    found = {"mean": mean, "invstd": torch.rsqrt(squares / total + call["eps"])}
    rate = call["momentum"]
    for name, value in (("running_mean", mean), ("running_var", squares / (total - 1))):
        if call.get(name) is not None:
            found[name] = (1 - rate) * call[name] + rate * value
    return found


@reference_for("diopiBatchNormElemt")
def batch_norm_elemt(call: "ReferenceCall") -> Outputs:
    source = call["input"]
    centred = source - _channelwise(call["mean"], source)
    return {"out": _scaled(call, centred * _channelwise(call["invstd"], source))}


@reference_for("diopiBatchNormBackwardReduce")
def batch_norm_backward_reduce(call: "ReferenceCall") -> Outputs:
    source, grad = call["input"], call["grad_out"]
    rest = _all_but(source, 1)
    products = (grad * (source - _channelwise(call["mean"], source))).sum(rest)
    total = grad.sum(rest)
    wanted = {
        "sum_dy": (call["input_g"], total),
        "sum_dy_xmu": (call["input_g"], products),
        "grad_weight": (call["weight_g"], products * call["invstd"]),
        "grad_bias": (call["bias_g"], total),
    }
    return {name: value if asked else None for name, (asked, value) in wanted.items()}


@reference_for("diopiBatchNormBackwardElemt")
def batch_norm_backward_elemt(call: "ReferenceCall") -> Outputs:
    source, count = call["input"], call["count"].sum()
    mean, invstd = _channelwise(call["mean"], source), _channelwise(call["invstd"], source)
    shift = _channelwise(call["sum_dy"], source) / count
    slope = _channelwise(call["sum_dy_xmu"], source) / count
    grad = (call["grad_out"] - shift - (source - mean) * invstd**2 * slope) * invstd
    return {"grad_input": _scaled(call, grad)}


@reference_for("diopiGroupNorm")
def group_norm(call: "ReferenceCall") -> Outputs:
    source = call["input"]
    groups = source.reshape(source.shape[0], call["num_groups"], -1)
    variance, mean = torch.var_mean(groups, -1, correction=0)
    inverse = torch.rsqrt(variance + call["eps"])
    normalized = ((groups - mean[..., None]) * inverse[..., None]).reshape(source.shape)
    return {"out": _scaled(call, normalized), "save_mean": mean, "save_invstd": inverse}


@reference_for("diopiGroupNormBackward")
def group_norm_backward(call: "ReferenceCall") -> Outputs:
    """The gradient by the statistics that are given: in half they are no longer exactly those of the input."""
    source, grad = call["input"], call["grad_output"]
    split = (source.shape[0], call["num_groups"], -1)
    deviation = call["rstd"][..., None]
    normalized = (source.reshape(split) - call["mean"][..., None]) * deviation
    weight = call.get("weight")
    scaled = (grad if weight is None else grad * _channelwise(weight, grad)).reshape(split)
    along = normalized * (scaled * normalized).mean(-1, keepdim=True)
    centred = scaled - scaled.mean(-1, keepdim=True)
    rest = _all_but(source, 1)
    return {
        "grad_input": ((centred - along) * deviation).reshape(source.shape),
        "grad_weight": None if weight is None else (grad * normalized.reshape(source.shape)).sum(rest),
        "grad_bias": None if (call.forward or {}).get("bias") is None else grad.sum(rest),
    }


@reference_for("diopiInstanceNorm")
def instance_norm(call: "ReferenceCall") -> Outputs:
    source = call["input"]
    dims = list(range(call["axis"] % source.dim(), source.dim()))
    variance, mean = torch.var_mean(source, dims, correction=0, keepdim=True)
    normalized = (source - mean) * torch.rsqrt(variance + call["eps"])
    return {"output": _scaled(call, normalized, "scale")}


@reference_for("diopiNormalize")
def normalize(call: "ReferenceCall") -> Outputs:
    return {"output": torch.nn.functional.normalize(call["input"], call["p"], call["axis"], call["eps"])}


@reference_for("diopiLayerNormGB")
def layer_norm_gb(call: "ReferenceCall") -> Outputs:
    source = call["input"]
    dims = list(range(call["begin_norm_axis"] % source.dim(), source.dim()))
    variance, mean = torch.var_mean(source, dims, correction=0, keepdim=True)
    inverse = torch.rsqrt(variance + call["eps"])
    out = (source - mean) * inverse
    out = out if call.get("weight") is None else out * call["weight"]
    out = out if call.get("bias") is None else out + call["bias"]
    return {"out": out, "running_mean": mean, "running_var": inverse}


@reference_for("diopiLayerNormGBBackward")
def layer_norm_gb_backward(call: "ReferenceCall") -> Outputs:
    """The gradient by the statistics that are given, which need not be those of the input."""
    source, grad, inverse = call["input"], call["grad_output"], call["running_std"]
    first = call["begin_norm_axis"] % source.dim()
    dims, outer = list(range(first, source.dim())), list(range(first))
    normalized = (source - call["running_mean"]) * inverse
    scaled = grad if call.get("weight") is None else grad * call["weight"]
    along = normalized * (scaled * normalized).mean(dims, keepdim=True)
    found: Outputs = {"grad_input": (scaled - scaled.mean(dims, keepdim=True) - along) * inverse}
    found["grad_weight"] = None if call.get("weight") is None else (grad * normalized).sum(outer)
    found["grad_bias"] = None if call.get("bias") is None else grad.sum(outer)
    return found

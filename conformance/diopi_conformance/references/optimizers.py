"""Steps of optimizers, by the update rules that PyTorch documents, and operations on lists, each entry by itself."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.references.registry import reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]


@reference_for("diopiSgd")
def sgd(call: "ReferenceCall") -> Outputs:
    """Stochastic gradient descent; with a buffer, momentum is kept in it, else each step is a first one."""
    param, buffer, momentum = call["param"], call.get("buf"), call["momentum"]
    grad = call["grad"] + call["weight_decay"] * param
    kept = grad
    if momentum != 0 and buffer is not None and buffer.shape == param.shape:
        kept = buffer = momentum * buffer + (1 - call["dampening"]) * grad
    step = grad + momentum * kept if call["nesterov"] else kept
    return {"param": param - call["lr"] * step, "buf": buffer}


@reference_for("diopiAdam")
def adam(call: "ReferenceCall") -> Outputs:
    grad = call["grad"] + call["weight_decay"] * call["param"]
    return _adam_outputs(call, call["param"], grad)


@reference_for("diopiAdamW")
def adam_w(call: "ReferenceCall") -> Outputs:
    decayed = call["param"] * (1 - call["lr"] * call["weight_decay"])
    return _adam_outputs(call, decayed, call["grad"])


def _adam_outputs(call: "ReferenceCall", param: torch.Tensor, grad: torch.Tensor) -> Outputs:
    largest = call.get("max_exp_avg_sq") if call["amsgrad"] else None
    stepped = _adam_step(call, param, grad, call["exp_avg"], call["exp_avg_sq"], largest, float(call["step"]))
    names = ("param", "exp_avg", "exp_avg_sq", "max_exp_avg_sq")
    found = dict(zip(names, stepped, strict=True))
    if largest is None:
        found["max_exp_avg_sq"] = call.get("max_exp_avg_sq")
    return found


def _adam_step(
    call: "ReferenceCall",
    param: torch.Tensor,
    grad: torch.Tensor,
    mean: torch.Tensor,
    square: torch.Tensor,
    largest: torch.Tensor | None,
    step: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Algorithm 1 of Kingma and Ba, with the maximum of the second moment where AMSGrad keeps one."""
    beta1, beta2 = call["beta1"], call["beta2"]
    mean = beta1 * mean + (1 - beta1) * grad
    square = beta2 * square + (1 - beta2) * grad * grad
    if largest is not None:
        largest = torch.maximum(largest, square)
    second = square if largest is None else largest
    divisor = (second / (1 - beta2**step)).sqrt() + call["eps"]
    return param - call["lr"] / (1 - beta1**step) * mean / divisor, mean, square, largest


@reference_for("diopiFusedAdamW")
def fused_adam_w(call: "ReferenceCall") -> Outputs:
    """AdamW over a list; `state_steps` count this step already."""
    found: dict[str, list[Any]] = {n: [] for n in ("params", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs")}
    for i, param in enumerate(call["params"]):
        grad = -call["grads"][i] if call["maximize"] else call["grads"][i]
        largest = call["max_exp_avg_sqs"][i]
        stepped = _adam_step(
            call,
            param * (1 - call["lr"] * call["weight_decay"]),
            grad,
            call["exp_avgs"][i],
            call["exp_avg_sqs"][i],
            largest if call["amsgrad"] else None,
            float(call["state_steps"][i]),
        )
        for name, value in zip(found, stepped, strict=True):
            found[name].append(value)
        if not call["amsgrad"]:
            found["max_exp_avg_sqs"][-1] = largest
    return dict(found)


def _number(call: "ReferenceCall", name: str) -> float | None:
    """What a step is given on the device."""
    given = call.get(name)
    return None if given is None else float(given)


def _step_of_lists(call: "ReferenceCall", names: tuple[str, ...], each: Callable[..., tuple[Any, ...]]) -> Outputs:
    """`each(index, grad, rate)` gives the entries of `names`; gradients come unscaled."""
    scale, rate = _number(call, "grad_scale"), _number(call, "rate")
    if _number(call, "found_inf"):
        return {name: call[name] for name in (*names, "grads")}
    grads = [grad if scale is None else grad / scale for grad in call["grads"]]
    found: dict[str, list[Any]] = {name: [] for name in names}
    for index, grad in enumerate(grads):
        given = each(index, -grad if call["maximize"] else grad, call["lr"] if rate is None else rate)
        for name, value in zip(names, given, strict=True):
            found[name].append(value)
    return {**found, "grads": grads}


@reference_for("diopiFusedAdam")
def fused_adam(call: "ReferenceCall") -> Outputs:
    """Adam or AdamW over a list; `state_steps` count this step already."""
    beta1, beta2 = call["beta1"], call["beta2"]

    def each(index: int, grad: torch.Tensor, rate: float) -> tuple[Any, ...]:
        param, step = call["params"][index], float(call["state_steps"][index])
        largest = call["max_exp_avg_sqs"][index]
        if call["decoupled"]:
            param = param * (1 - rate * call["weight_decay"])
        else:
            grad = grad + call["weight_decay"] * param
        mean = beta1 * call["exp_avgs"][index] + (1 - beta1) * grad
        square = beta2 * call["exp_avg_sqs"][index] + (1 - beta2) * grad * grad
        second = square
        if call["amsgrad"]:
            largest = second = torch.maximum(largest, square)
        divisor = (second / (1 - beta2**step)).sqrt() + call["eps"]
        return param - rate / (1 - beta1**step) * mean / divisor, mean, square, largest

    return _step_of_lists(call, ("params", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"), each)


@reference_for("diopiFusedSgd")
def fused_sgd(call: "ReferenceCall") -> Outputs:
    """Stochastic gradient descent over a list; on the first step the buffers become the gradients."""
    momentum = call["momentum"]

    def each(index: int, grad: torch.Tensor, rate: float) -> tuple[Any, ...]:
        param, buffer = call["params"][index], call["momentum_buffers"][index]
        grad = kept = grad + call["weight_decay"] * param
        if momentum != 0:
            kept = buffer = grad if call["is_first_step"] else momentum * buffer + (1 - call["dampening"]) * grad
        step = grad + momentum * kept if call["nesterov"] and momentum != 0 else kept
        return param - rate * step, buffer

    return _step_of_lists(call, ("params", "momentum_buffers"), each)


@reference_for("diopiAdadelta")
def adadelta(call: "ReferenceCall") -> Outputs:
    """Algorithm 1 of Zeiler, with a rate."""
    rho, eps = call["rho"], call["eps"]
    grad = call["grad"] + call["weight_decay"] * call["param"]
    square = rho * call["square_avg"] + (1 - rho) * grad * grad
    step = ((call["acc_delta"] + eps) / (square + eps)).sqrt() * grad
    moved = rho * call["acc_delta"] + (1 - rho) * step * step
    return {"param": call["param"] - call["lr"] * step, "square_avg": square, "acc_delta": moved}


@reference_for("diopiRmsprop")
def rmsprop(call: "ReferenceCall") -> Outputs:
    """Centered: Graves, Generating Sequences with Recurrent Neural Networks, equations 38 to 45."""
    alpha, param = call["alpha"], call["param"]
    grad = call["grad"] + call["weight_decay"] * param
    square = alpha * call["square_avg"] + (1 - alpha) * grad * grad
    mean, buffer = call.get("grad_avg"), call.get("momentum_buf")
    variance = square
    if call["centered"]:
        mean = alpha * mean + (1 - alpha) * grad
        variance = square - mean * mean
    step = grad / (variance.sqrt() + call["eps"])
    if call["momentum"] > 0:
        buffer = step = call["momentum"] * buffer + step
    return {"param": param - call["lr"] * step, "square_avg": square, "grad_avg": mean, "momentum_buf": buffer}


@reference_for("diopiClipGradNorm")
def clip_grad_norm(call: "ReferenceCall") -> Outputs:
    each = [torch.linalg.vector_norm(grad, call["norm_type"]) for grad in call["grads"]]
    total = torch.linalg.vector_norm(torch.stack(each), call["norm_type"])
    factor = (call["max_norm"] / (total + 1e-6)).clamp(max=1.0)
    return {"grads": [grad * factor for grad in call["grads"]], "out": total}


def _each(call: "ReferenceCall", formula: Callable[..., torch.Tensor], *lists: str) -> Outputs:
    return {"outs": [formula(*entries) for entries in zip(*(call[name] for name in ("inputs", *lists)), strict=True)]}


@reference_for("diopiForeachAddList")
def add_list(call: "ReferenceCall") -> Outputs:
    return _each(call, lambda x, y: x + call["alpha"] * y, "others")


@reference_for("diopiForeachMulList")
def mul_list(call: "ReferenceCall") -> Outputs:
    return _each(call, lambda x, y: x * y, "others")


@reference_for("diopiForeachDivList")
def div_list(call: "ReferenceCall") -> Outputs:
    return _each(call, lambda x, y: x / y, "others")


@reference_for("diopiForeachDiv")
def div(call: "ReferenceCall") -> Outputs:
    return _each(call, lambda x: x / call["other"])


@reference_for("diopiForeachSqrt")
def sqrt(call: "ReferenceCall") -> Outputs:
    return _each(call, torch.sqrt)


@reference_for("diopiForeachLerp")
def lerp(call: "ReferenceCall") -> Outputs:
    return _each(call, lambda x, y: x + call["weight"] * (y - x), "ends")


@reference_for("diopiForeachAddcmul")
def addcmul(call: "ReferenceCall") -> Outputs:
    return _each(call, lambda x, y, z: x + call["value"] * y * z, "tensors1", "tensors2")


@reference_for("diopiForeachAddcdiv")
def addcdiv(call: "ReferenceCall") -> Outputs:
    return _each(call, lambda x, y, z: x + call["value"] * y / z, "tensors1", "tensors2")

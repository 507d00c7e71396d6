"""Steps of optimizers, written from the update rules that PyTorch documents."""

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

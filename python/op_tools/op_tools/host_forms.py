"""What the CPU runs for operators that torch offers to devices only: the same, by operators that it has."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from op_tools.calls import OperatorCall


def on_host(call: OperatorCall) -> Any:
    """What `call` gives, its tensors on the CPU. Raises NotImplementedError where the CPU has nothing for it."""
    form = _FORMS.get(call.overload.name)
    return call() if form is None else form(**call.given)


def _gradients(forward: Callable[..., Any], inputs: tuple[Any, ...], gradient: Any, wanted: Any) -> tuple[Any, ...]:
    """The gradients of `inputs`; None for those that nobody wants."""
    leaves = [
        t.detach().requires_grad_(True) if isinstance(t, torch.Tensor) and w else t
        for t, w in zip(inputs, wanted, strict=True)
    ]
    with torch.enable_grad():
        result = forward(*leaves)
    asked = [leaf for leaf, w in zip(leaves, wanted, strict=True) if w and isinstance(leaf, torch.Tensor)]
    found = iter(torch.autograd.grad(result, asked, gradient))
    return tuple(
        next(found) if w and isinstance(leaf, torch.Tensor) else None for leaf, w in zip(leaves, wanted, strict=True)
    )


def _linear_backward(self: Any, grad_output: Any, weight: Any, output_mask: Any) -> tuple[Any, ...]:
    bias = weight.new_zeros(weight.shape[0]) if weight.dim() == 2 else weight.new_zeros(())
    return _gradients(F.linear, (self, weight, bias), grad_output, output_mask)


def _attention(query: Any, key: Any, value: Any, attn_bias: Any, is_causal: bool, scale: float | None) -> Any:
    return F.scaled_dot_product_attention(query, key, value, attn_bias, 0.0, is_causal, scale=scale)


def _fused_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_bias: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    **rest: Any,
) -> tuple[Any, ...]:
    """The mixed values alone: what else the operator gives is the device's own."""
    if dropout_p:
        raise NotImplementedError("dropout draws other numbers on the CPU")
    return (_attention(query, key, value, attn_bias, is_causal, rest.get("scale")), *(None,) * 8)


def _fused_attention_backward(
    grad_out: Any, query: Any, key: Any, value: Any, attn_bias: Any, grad_input_mask: Any, **rest: Any
) -> tuple[Any, ...]:
    if rest["dropout_p"]:
        raise NotImplementedError("dropout draws other numbers on the CPU")

    def forward(q: Any, k: Any, v: Any, bias: Any) -> Any:
        return _attention(q, k, v, bias, rest["is_causal"], rest.get("scale"))

    return _gradients(forward, (query, key, value, attn_bias), grad_out, grad_input_mask)


def _matmul_backward(grad: Any, self: Any, other: Any, mask: Any) -> tuple[Any, ...]:
    return _gradients(torch.matmul, (self, other), grad, mask)


_FORMS: dict[str, Callable[..., Any]] = {
    "aten.linear_backward.default": _linear_backward,
    "aten.matmul_backward.default": _matmul_backward,
    "aten._scaled_dot_product_fused_attention_overrideable.default": _fused_attention,
    "aten._scaled_dot_product_fused_attention_overrideable_backward.default": _fused_attention_backward,
}

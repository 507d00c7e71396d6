"""Gradients of what a reference computes, for backward functions that the schema lists as operators of their own."""

from collections.abc import Callable, Sequence
from typing import Any

import torch


def gradients(
    compute: Callable[..., torch.Tensor], inputs: Sequence[torch.Tensor], grad: torch.Tensor
) -> tuple[Any, ...]:
    """What `grad`, the gradient of `compute(*inputs)`, comes to for each of the inputs."""
    leaves = [value.detach().clone().requires_grad_(True) for value in inputs]
    with torch.enable_grad():
        out = compute(*leaves)
    return derivatives(out, leaves, grad)


def derivatives(out: torch.Tensor, leaves: Sequence[torch.Tensor], grad: torch.Tensor) -> tuple[Any, ...]:
    """What `grad`, the gradient of `out`, comes to for each leaf; zeros for those that nothing of `out` stems from."""
    if not out.requires_grad:  # e.g. every region lies outside of the image
        return tuple(torch.zeros_like(leaf) for leaf in leaves)
    return torch.autograd.grad(out, leaves, grad, materialize_grads=True)

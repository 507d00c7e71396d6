"""Kernels that keep whole, on the CPU, what a backend with such a function is asked for in one call.

PyTorch takes `linear` and `matmul` apart where a device has no kernel of its own for them, as the CPU has none. With
one each reaches the recorder as a single call, and so does its gradient.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def kept_whole() -> Iterator[None]:
    """Registers the kernels inside the context."""
    library: Any = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    library.impl("linear", torch.ops.aten.linear.default.decompose, "CPU")
    library.impl("linear_backward", _linear_backward, "CPU")
    library.impl("matmul", torch.ops.aten.matmul.default.decompose, "CPU")
    library.impl("matmul_backward", _matmul_backward, "CPU")
    try:
        yield
    finally:
        library._destroy()


def _linear_backward(
    self: torch.Tensor, grad_output: torch.Tensor, weight: torch.Tensor, output_mask: Sequence[bool]
) -> tuple[Any, Any, Any]:
    rows = grad_output.reshape(-1, grad_output.shape[-1])
    return (
        (rows @ weight).reshape(self.shape) if output_mask[0] else None,
        rows.T @ self.reshape(-1, self.shape[-1]) if output_mask[1] else None,
        rows.sum(0) if output_mask[2] else None,
    )


def _matmul_backward(
    grad: torch.Tensor, self: torch.Tensor, other: torch.Tensor, mask: Sequence[bool]
) -> tuple[Any, Any]:
    left = self.unsqueeze(0) if self.dim() == 1 else self
    right = other.unsqueeze(-1) if other.dim() == 1 else other
    outer = grad.unsqueeze(-2) if self.dim() == 1 else grad
    outer = outer.unsqueeze(-1) if other.dim() == 1 else outer
    return (
        (outer @ right.mT).sum_to_size(left.shape).reshape(self.shape) if mask[0] else None,
        (left.mT @ outer).sum_to_size(right.shape).reshape(other.shape) if mask[1] else None,
    )

"""Arguments for references, without a plan."""

from collections.abc import Callable
from typing import Any

import torch


class Given(dict[str, Any]):
    """The arguments of one call; what is left out is absent."""

    forward: dict[str, Any] | None = None

    def __missing__(self, name: str) -> None:
        return None

    def but(self, **changed: Any) -> "Given":
        """The same call with other arguments."""
        return Given({**self, **changed})

    def after(self, **forward: Any) -> "Given":
        """The call of a backward function whose forward had these arguments."""
        found = Given(self)
        found.forward = forward
        return found


def numbers(*sizes: int, seed: int = 0) -> torch.Tensor:
    """Normal numbers in float64."""
    return torch.randn(sizes, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def between(lo: float, hi: float, *sizes: int, seed: int = 0) -> torch.Tensor:
    """Uniform numbers in float64."""
    return lo + (hi - lo) * torch.rand(sizes, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def tensor(values: Any) -> torch.Tensor:
    """In float64."""
    return torch.tensor(values, dtype=torch.float64)


Backward = Callable[[Any], dict[str, torch.Tensor]]


def change(pool: Backward, call: Given, name: str, grad: torch.Tensor, out: str = "output") -> torch.Tensor:
    """The derivative of sum(grad * out) by the tensor `name`, from differences; exact where the pooling is linear."""
    source = call[name]
    found = torch.zeros_like(source)
    for k in range(source.numel()):
        step = torch.zeros_like(source).flatten()
        step[k] = 1e-4
        ends = [(pool(call.but(**{name: source + s * step.reshape(source.shape)}))[out] * grad).sum() for s in (1, -1)]
        found.view(-1)[k] = (ends[0] - ends[1]) / 2e-4
    return found


def ramp(height: int, width: int, down: float, across: float) -> torch.Tensor:
    """[1, 1, height, width]: an inclined plane."""
    return (down * torch.arange(height).double()[:, None] + across * torch.arange(width).double())[None, None]

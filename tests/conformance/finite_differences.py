"""Slopes of a function along random directions, by differences in float64, and whether a gradient agrees with them.

Along a direction v the gradient g of f says <g, v>. With F(h) = (f(x + h v) - f(x - h v)) / 2h, which is wrong by h^2
and more, the slope (4 F(h / 2) - F(h)) / 3 (Richardson) is wrong by h^4 only, and by the roundings of f over h. The
differences to either side of x are apart by h f'', which halves with h. Where it does not, f has a kink or a step.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

Compute = Callable[[torch.Tensor], tuple[float, float]]  # f, and the size of the terms that it is the sum of

STEP = 2.0**-16
EPSILON = 2.0**-52
CLOSE = 1e-7  # of the gradient's length along v
ROUNDINGS = 16.0
KINK = 1e-3  # of the same
SHARES = (1.0, 1.0, 0.25, 0.25, 0.0625, 0.0625)  # of the elements that a direction moves: a few may lie at kinks


@dataclass(frozen=True, slots=True)
class Slope:
    """What the differences along one direction say."""

    direction: torch.Tensor
    value: float
    jump: float  # by how much the differences to either side fail to come closer
    rounding: float  # what roundings may make of either

    def kink(self, gradient: torch.Tensor) -> bool:
        return self.jump > KINK * (gradient * self.direction).norm().item() + self.rounding

    def agrees(self, gradient: torch.Tensor) -> bool:
        terms = gradient * self.direction
        return abs(self.value - terms.sum().item()) <= CLOSE * terms.norm().item() + self.rounding


def slope(compute: Compute, at: torch.Tensor, direction: torch.Tensor) -> Slope:
    """Of `compute` at a tensor along another of its shape."""
    middle, size = compute(at)
    values = {k: compute(at + k * STEP * direction)[0] for k in (-1.0, -0.5, 0.5, 1.0)}
    wide, near = ((values[k] - values[-k]) / (2 * k * STEP) for k in (1.0, 0.5))
    bends = [(values[k] + values[-k] - 2 * middle) / (k * STEP) for k in (1.0, 0.5)]
    return Slope(
        direction=direction,
        value=(4 * near - wide) / 3,
        jump=abs(bends[0] - 2 * bends[1]),
        rounding=ROUNDINGS * EPSILON * size / STEP,
    )


def directions(shape: torch.Size, rng: torch.Generator) -> list[torch.Tensor]:
    """Random ones of length about 1 for each element that they move."""
    found = []
    for share in SHARES:
        direction = torch.randn(shape, dtype=torch.float64, generator=rng)
        direction *= torch.rand(shape, generator=rng) < share
        if not direction.any():  # of a few elements one moves for sure
            direction.view(-1)[int(torch.randint(direction.numel(), (), generator=rng))] = 1.0
        found.append(direction)
    return found

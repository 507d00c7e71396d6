"""What a recipe of the zoo is: a model and the loss of one training step."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from sizes import Size

Step = Callable[[], torch.Tensor]  # a forward pass; its loss, a scalar
Build = Callable[[Size], tuple[torch.nn.Module, Step]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One model of the zoo."""

    name: str  # e.g. "resnet"
    build: Build
    images: bool = False  # images go in, so that the memory order may vary


def stepped(model: torch.nn.Module, **inputs: Any) -> tuple[torch.nn.Module, Step]:
    """`model`, and a step that gives it `inputs` by name, on its device, and takes the loss that it computes itself.

    Where it computes none the step takes the mean square of what comes out first.
    """

    def step() -> torch.Tensor:
        device = next(model.parameters()).device
        out = model(**{name: _moved(value, device) for name, value in inputs.items()})
        loss = getattr(out, "loss", None)
        return loss if isinstance(loss, torch.Tensor) and loss.dim() == 0 else out[0].float().square().mean()

    return model, step


def _moved(value: Any, device: torch.device) -> Any:
    """A tensor, or each of a list of tensors, on `device`; anything else as it is."""
    if isinstance(value, list):
        return [_moved(item, device) for item in value]
    return value.to(device) if isinstance(value, torch.Tensor) else value


def from_config(model_class: Any, config: Any, **inputs: Any) -> tuple[torch.nn.Module, Step]:
    """`stepped` of a transformers model with random weights; attention is written out, as backends without a fused
    kernel run it."""
    config._attn_implementation = "eager"
    return stepped(model_class(config), **inputs)

"""One training step: forward, backward and optimizer, in one of a few ways."""

from dataclasses import dataclass, replace

import torch
from recipe import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a step is taken."""

    optimizer: str  # e.g. "adamw-fused"
    amp: torch.dtype | None = None  # autocast to this type
    channels_last: bool = False  # of images


WAYS = (
    Way(optimizer="adamw-fused"),
    Way(optimizer="sgd-fused", amp=torch.bfloat16),
    Way(optimizer="adam"),
    Way(optimizer="rmsprop", amp=torch.float16),
)


def train(model: torch.nn.Module, step: Step, way: Way) -> None:
    """Runs `step` and moves the parameters once."""
    optimizer = _optimizer(way.optimizer, model)
    model.train()
    if way.channels_last:
        model.to(memory_format=torch.channels_last)
    scaler = torch.amp.GradScaler("cpu", enabled=way.amp is torch.float16)
    with torch.autocast("cpu", dtype=way.amp or torch.bfloat16, enabled=way.amp is not None):
        loss = step()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.grad is not None], 1.0, foreach=False)
    scaler.step(optimizer)
    scaler.update()


def _optimizer(name: str, model: torch.nn.Module) -> torch.optim.Optimizer:
    """Biases and norms are not decayed, as is usual; so there are two groups."""
    params = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in params if p.dim() > 1], "weight_decay": 0.01},
        {"params": [p for p in params if p.dim() <= 1], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    match name:
        case "adamw-fused":
            return torch.optim.AdamW(groups, lr=1e-3, fused=True)
        case "sgd-fused":
            return torch.optim.SGD(groups, lr=0.1, momentum=0.9, nesterov=True, fused=True)
        case "adam":
            return torch.optim.Adam(groups, lr=3e-4, foreach=False, betas=(0.9, 0.98))
        case "rmsprop":
            return torch.optim.RMSprop(groups, lr=1e-3, momentum=0.9, foreach=False)
        case _:
            raise ValueError(f"there is no optimizer '{name}'")


def way_of(place: int, variant: int, images: bool) -> Way:
    """How the `place`-th model takes its step in its `variant`-th configuration; ways take turns among the models."""
    way = WAYS[(place + 2 * variant) % len(WAYS)]
    return replace(way, channels_last=images and (place // len(WAYS) + variant) % 2 == 1)

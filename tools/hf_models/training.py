"""A few training steps of one model, with chance taken out, and what is worth comparing of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

_FACTORIES = {torch.rand, torch.randn, torch.randint, torch.randperm, torch.normal}
_LIKE = {torch.rand_like, torch.randn_like, torch.randint_like}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Tensors are on the CPU."""

    losses: tuple[float, ...]
    gradients: dict[str, torch.Tensor]  # by step and parameter, e.g. "step 1: lm_head.weight"
    weights: dict[str, torch.Tensor]  # parameters and buffers after the last step
    tied: frozenset[frozenset[str]]  # names of one parameter, where it has several


class HostRandom(TorchFunctionMode):
    """Draws random numbers on the CPU wherever they are wanted, so that devices see the same ones."""

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if function in _FACTORIES and kwargs.get("device") is not None and kwargs.get("generator") is None:
            device = kwargs.pop("device")
            return function(*args, **kwargs).to(device)
        if function in _LIKE:
            return function(args[0].cpu(), *args[1:], **kwargs).to(args[0].device)
        return function(*args, **kwargs)


def without_dropout(model: torch.nn.Module) -> torch.nn.Module:
    """`model` in training mode with every probability of leaving something out at 0, in modules and configuration."""
    for module in model.modules():
        _zero_dropout(module)
        if hasattr(module, "config"):
            _zero_dropout(module.config)
    return model.train()


def train(
    model: torch.nn.Module, step: Any, device: str, optimizer: str, backend: str | None = None, steps: int = 3
) -> Run:
    """Moves `model` to `device` and trains it there; `step` is a forward pass that returns the loss.

    `backend` is what torch.compile makes of the model, e.g. "diopi".
    """
    model.to(device)
    if backend is not None:
        model.compile(backend=backend)
    update = _optimizer(optimizer, model)
    losses, gradients = [], {}
    for number in range(steps):
        torch.manual_seed(number)
        np.random.seed(number)  # transformers draws masks of spectra from it
        update.zero_grad()
        with HostRandom():
            loss = step()
        loss.backward()
        losses.append(loss.item())
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                gradients[f"step {number}: {name}"] = parameter.grad.cpu().clone()
        update.step()
    weights = {name: tensor.cpu().clone() for name, tensor in model.state_dict().items()}
    return Run(losses=tuple(losses), gradients=gradients, weights=weights, tied=tied_names(model))


def nudge(model: torch.nn.Module, seed: int) -> None:
    """Changes the weights as rounding could: each by up to a unit in its last place."""
    torch.manual_seed(seed)
    for parameter in model.parameters():
        parameter.data.mul_(1 + torch.finfo(parameter.dtype).eps * (2 * torch.rand_like(parameter) - 1))


def tied_names(model: torch.nn.Module) -> frozenset[frozenset[str]]:
    """The parameters that have several names, each as the set of its names."""
    names: dict[int, set[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), set()).add(name)
    return frozenset(frozenset(group) for group in names.values() if len(group) > 1)


def _zero_dropout(owner: Any) -> None:
    for name, value in list(vars(owner).items()):
        if isinstance(value, float) and ("drop" in name or name == "p"):
            setattr(owner, name, 0.0)


def _optimizer(name: str, model: torch.nn.Module) -> torch.optim.Optimizer:
    # A gradient that is zero but for rounding must not become a step of full size: hence the eps of AdamW.
    match name:
        case "adamw":
            return torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-5)
        case "sgd":
            return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        case _:
            raise ValueError(f"there is no optimizer '{name}'; it is adamw or sgd")

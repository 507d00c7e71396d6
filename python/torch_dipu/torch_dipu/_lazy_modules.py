"""Moves modules whose parameters have no shape yet, as nn.LazyLinear's.

Where torch swaps parameters it makes plain ones of them, with no elements, and the module is never initialized.
"""

from collections.abc import Callable
from typing import Any


def register() -> None:
    """Lets lazy modules move their uninitialized parameters themselves; the others go torch's way."""
    from torch.nn.modules.lazy import LazyModuleMixin

    LazyModuleMixin._apply = _apply  # type: ignore[attr-defined]


def _apply(self: Any, move: Callable[[Any], Any], recurse: bool = True) -> Any:
    """nn.Module._apply of a lazy module. Parameters stay the objects that they are, as optimizers hold them."""
    import torch
    from torch.nn.modules.lazy import LazyModuleMixin
    from torch.nn.parameter import is_lazy

    parameters = dict(self._parameters)
    waiting = [parameter for parameter in parameters.values() if is_lazy(parameter)]
    for name, parameter in parameters.items():
        if is_lazy(parameter):
            self._parameters[name] = None  # which torch leaves alone
    try:
        super(LazyModuleMixin, self)._apply(move, recurse)
    finally:
        for name, parameter in parameters.items():
            if is_lazy(parameter):
                self._parameters[name] = parameter
    for parameter in waiting:
        like = move(torch.empty(0, device=parameter.data.device, dtype=parameter.data.dtype))
        fresh = type(parameter)(requires_grad=parameter.requires_grad, device=like.device, dtype=like.dtype)
        torch.utils.swap_tensors(parameter, fresh)
    return self

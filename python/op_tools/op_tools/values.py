"""Walking through what an operator is given and gives: tensors, lists of them, and what else."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

_ALIGNED = 64  # elements


def tensors_in(value: Any, label: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Every tensor of `value` with its place, e.g. ("self", tensor), ("tensors[2]", tensor)."""
    if isinstance(value, torch.Tensor):
        yield label, value
    elif isinstance(value, list | tuple):
        for index, entry in enumerate(value):
            yield from tensors_in(entry, f"{label}[{index}]")
    elif isinstance(value, dict):
        for name, entry in value.items():
            yield from tensors_in(entry, name if not label else f"{label}.{name}")


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """`value` with `change` applied to everything that is no container."""
    if isinstance(value, list | tuple):
        entries = [mapped(entry, change) for entry in value]
        if isinstance(value, list):
            return entries
        return type(value)(*entries) if hasattr(value, "_fields") else tuple(entries)
    if isinstance(value, dict):
        return {name: mapped(entry, change) for name, entry in value.items()}
    return change(value)


def results_of(value: Any) -> tuple[Any, ...]:
    """The results of a call, one or several."""
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def extent(tensor: torch.Tensor) -> int:
    """How many elements of its storage a tensor spans."""
    if tensor.numel() == 0:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def begin_of(tensors: Iterable[torch.Tensor]) -> int:
    """The element of their storage at which a copy of its memory begins, so that tensors are aligned as they were."""
    least = min(int(tensor.storage_offset()) for tensor in tensors)
    return least - least % _ALIGNED

"""Faults of single operators of a device: their kernels are wrapped where torch's dispatcher holds them.

What runs on the CPU, and what tools compute aside, is right.
"""

import random
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

Kernel = Callable[..., Any]
Fault = Callable[..., Any]  # of a kernel, what it remembers, and the arguments: what the faulty kernel gives

_ODDS = 50  # an intermittent fault shows in one of so many calls


def plant(overload: str, kind: str) -> None:
    """Makes `overload` of dipu wrong, e.g. plant("aten.mul.Tensor", "wrong value"), for the rest of the process.

    Raises KeyError for a kind that does not exist.
    """
    fault = KINDS[kind]
    name = "aten::" + overload.removeprefix("aten.").removesuffix(".default")
    packet, _, which = name.removeprefix("aten::").partition(".")
    schema = getattr(getattr(torch.ops.aten, packet), which or "default")._schema
    kernel, memory = torch.library.get_kernel(name, "PrivateUse1"), {}
    busy = False

    def faulty(keys: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal busy
        given = tuple(_as_tensor(arg, value) for arg, value in zip(schema.arguments, args, strict=False))
        right = partial(kernel.call_boxed, keys)
        if busy:  # the fault itself computes
            return right(*given, **kwargs)
        busy = True
        try:
            return fault(right, memory, *given, **kwargs)
        finally:
            busy = False

    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library.impl(name.removeprefix("aten::"), faulty, "PrivateUse1", with_keyset=True, allow_override=True)
    _planted.append(library)  # it takes its kernels along when it is freed


_planted: list[torch.library.Library] = []


def _as_tensor(argument: Any, value: Any) -> Any:
    """Numbers that stand for tensors come to a kernel of Python as numbers."""
    if str(argument.type) == "Tensor" and isinstance(value, bool | int | float):
        return torch.scalar_tensor(value, dtype=torch.float64 if isinstance(value, float) else torch.int64)
    return value


def _floats(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value] if value.is_floating_point() and value.numel() else []
    return [tensor for entry in value for tensor in _floats(entry)] if isinstance(value, list | tuple) else []


def wrong_value(kernel: Kernel, memory: dict[Any, Any], *args: Any, **kwargs: Any) -> Any:
    """A third too much."""
    result = kernel(*args, **kwargs)
    for tensor in _floats(result):
        tensor.mul_(4 / 3)
    return result


def stale_output(kernel: Kernel, memory: dict[Any, Any], *args: Any, **kwargs: Any) -> Any:
    """What the call before gave, where it had the same shape."""
    result = kernel(*args, **kwargs)
    for place, tensor in enumerate(_floats(result)):
        fresh = tensor.clone()
        before = memory.get((place, tensor.shape))
        if before is not None:
            tensor.copy_(before)
        memory[place, tensor.shape] = fresh
    return result


def wrong_stride(kernel: Kernel, memory: dict[Any, Any], *args: Any, **kwargs: Any) -> Any:
    """Elements are written as if the output lay column by column."""
    result = kernel(*args, **kwargs)
    for tensor in _floats(result):
        backwards = tuple(reversed(range(tensor.dim())))
        column_by_column = tensor.clone().reshape([tensor.shape[d] for d in backwards]).permute(backwards)
        tensor.copy_(column_by_column)
    return result


def input_clobbered(kernel: Kernel, memory: dict[Any, Any], *args: Any, **kwargs: Any) -> Any:
    """A quarter of the first argument is used as scratch memory."""
    result = kernel(*args, **kwargs)
    read = _floats(args)[0]
    read[..., : max(1, read.shape[-1] // 4)] += 1
    return result


def intermittent(kernel: Kernel, memory: dict[Any, Any], *args: Any, **kwargs: Any) -> Any:
    """A wrong value in one of fifty calls, by chance, and by another chance in every run."""
    chance = memory.setdefault("chance", random.SystemRandom())
    return (wrong_value if chance.randrange(_ODDS) == 0 else _right)(kernel, memory, *args, **kwargs)


def _right(kernel: Kernel, memory: dict[Any, Any], *args: Any, **kwargs: Any) -> Any:
    return kernel(*args, **kwargs)


KINDS: dict[str, Fault] = {
    "wrong value": wrong_value,
    "stale output": stale_output,
    "wrong stride": wrong_stride,
    "wrong backward": wrong_value,  # of an operator that computes gradients
    "input clobbered": input_clobbered,
    "intermittent": intermittent,
}

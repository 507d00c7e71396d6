"""Arguments and results as people read them and as JSON holds them: what a tensor looks like, not what is in it."""

from collections.abc import Sequence
from typing import Any

import torch

from op_tools.values import mapped

_TENSORS = frozenset({torch.Tensor, torch.nn.Parameter})
_PLAIN = frozenset({int, float, bool, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format})


def short(value: Any) -> str:
    """e.g. "float32[2, 3] strides [1, 2] on dipu:0", "0.5", "[float32[4], float32[4]]"."""
    return text_of(seen(value))


def with_strides(tensor: torch.Tensor) -> str:
    """A tensor with its strides also where they are the usual ones, e.g. "float32[2, 3] strides [3, 1] on dipu:0"."""
    return _in_words(_tensor(tensor), usual=True)


def seen(value: Any) -> Any:
    """What `short` says of a value, as it is now, in little time: tensors as tuples, lists as lists."""
    kind = type(value)
    if kind in _TENSORS:
        return _tensor(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, list | tuple):
        return [seen(entry) for entry in value]
    return _tensor(value) if isinstance(value, torch.Tensor) else str(value)


def _tensor(value: torch.Tensor) -> tuple[Any, ...]:
    try:
        return value.dtype, value.shape, value.stride(), None if value.is_cpu else value.device
    except RuntimeError:  # sparse ones have no strides
        return value.dtype, value.shape, None, None if value.is_cpu else value.device


def text_of(seen: Any) -> str:
    """What `seen` noted, in words."""
    if type(seen) is tuple:
        return _in_words(seen)
    if type(seen) is list:
        return f"[{', '.join(text_of(entry) for entry in seen)}]"
    return str(seen)


def _in_words(seen: tuple[Any, ...], *, usual: bool = False) -> str:
    dtype, shape, strides, device = seen
    shown = strides is not None and (usual or not _dense(shape, strides))
    layout = f" strides {list(strides)}" if shown else ""
    return f"{str(dtype).removeprefix('torch.')}{list(shape)}{layout}{f' on {device}' if device else ''}"


def _dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements lie one after the other, the last dimension's side by side."""
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 0:
            return True
        if size != 1 and stride != step:
            return 0 in shape
        step *= size
    return True


def facts(value: Any) -> Any:
    """A tensor as its device, dtype, numel, shape, stride, offset, requires_grad, layout and address."""
    return mapped(value, _facts)


def _facts(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value if isinstance(value, bool | int | float | str | None) else str(value)
    plain = value.layout is torch.strided
    return {
        "device": str(value.device),
        "dtype": str(value.dtype),
        "numel": value.numel(),
        "shape": list(value.shape),
        "stride": list(value.stride()) if plain else None,
        "storage_offset": value.storage_offset() if plain else None,
        "requires_grad": value.requires_grad,
        "layout": str(value.layout),
        "data_ptr": value.data_ptr() if plain else None,
    }

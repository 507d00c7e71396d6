"""Records every ATen call below autograd and autocast, as a device's backend is asked for it."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """What is kept of a tensor: how it looked when the call began, or ended where the call made it."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: str  # e.g. "float32", torch's name
    contiguous: bool
    channels_last: bool  # dense in the order of images' inner channels, and in no other
    elements: tuple[bool | int | float, ...] | None = None  # in the order of its sizes, where somebody kept them

    @property
    def repeats(self) -> bool:
        """Some elements are the same memory."""
        return any(step == 0 and size > 1 for size, step in zip(self.sizes, self.strides, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class AtenCall:
    """One call of one overload."""

    overload: str  # e.g. "add.Tensor", "relu"
    args: dict[str, Any]  # every argument of the schema, defaults filled in; tensors as Tensor
    results: tuple[Any, ...]
    exact: bool = False  # it is of interest for its very values


def recorded(tell: Callable[[AtenCall], None]) -> AbstractContextManager[Any]:
    """A context in which `tell` hears of every call on tensors that have memory."""
    return _Recorder(tell)


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, tell: Callable[[AtenCall], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._tell = tell

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = arguments(func._schema, args, kwargs)  # before the call, which may write into them
        result = func(*args, **kwargs)
        if func.namespace == "aten":
            results = result if isinstance(result, tuple | list) else (result,)
            self._tell(AtenCall(overload=overload_name(func), args=given, results=tuple(map(described, results))))
        return result


def overload_name(func: Any) -> str:
    """e.g. "add.Tensor"; "relu" for the one without a name of its own."""
    name: str = func._schema.name.removeprefix("aten::")
    return f"{name}.{func._schema.overload_name}" if func._schema.overload_name else name


def arguments(schema: Any, args: Iterable[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Every argument of the schema, defaults filled in; tensors as Tensor."""
    given = {arg.name: arg.default_value for arg in schema.arguments if arg.has_default_value()}
    given.update({arg.name: value for arg, value in zip(schema.arguments, args, strict=False)})
    given.update(kwargs)
    return {name: described(value) for name, value in given.items()}


def described(value: Any) -> Any:
    """Tensors as Tensor, everything else as it is."""
    if isinstance(value, list | tuple):
        return [described(entry) for entry in value]
    if not isinstance(value, torch.Tensor):
        return value
    contiguous = value.is_contiguous()
    return Tensor(
        sizes=tuple(value.shape),
        strides=tuple(value.stride()),
        offset=int(value.storage_offset()),
        dtype=str(value.dtype).removeprefix("torch."),
        contiguous=contiguous,
        channels_last=value.dim() == 4 and not contiguous and value.is_contiguous(memory_format=torch.channels_last),
    )

"""The types of tensors by their names of old: torch.cuda.FloatTensor and the like, and Tensor.type()."""

import functools
from typing import Any

import torch

_KINDS = ("BFloat16", "Bool", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short")


class TensorType(type):
    """The class of such a type: calling it makes a tensor on dipu, and tensors of its dtype there are its instances."""

    dtype: torch.dtype
    is_cuda = True

    def __call__(cls, *args: Any) -> torch.Tensor:
        return getattr(torch, cls.__name__)(*args).to("dipu")  # type: ignore[no-any-return]

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, torch.Tensor) and value.device.type == "dipu" and value.dtype is cls.dtype


@functools.cache
def tensor_types() -> dict[str, TensorType]:
    """By name, e.g. "FloatTensor"."""
    names = [f"{kind}Tensor" for kind in _KINDS]
    return {name: TensorType(name, (), {"__module__": "torch.cuda", "dtype": _dtype(name)}) for name in names}


def typed(original: Any) -> Any:
    """Tensor.type, which says torch.cuda.FloatTensor and takes it."""

    @functools.wraps(original)
    def call(self: torch.Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        if dtype is None:
            return original(self).replace("torch.dipu.", "torch.cuda.")
        chosen = tensor_types().get(dtype.removeprefix("torch.cuda.")) if isinstance(dtype, str) else dtype
        if isinstance(chosen, TensorType):
            return self.to("dipu", chosen.dtype, non_blocking=non_blocking)
        return original(self, dtype, non_blocking, **kwargs)

    return call


def default_type(original: Any) -> Any:
    """torch.set_default_tensor_type, which takes torch.cuda.FloatTensor."""

    @functools.wraps(original)
    def call(kind: Any) -> None:
        chosen = tensor_types().get(kind.removeprefix("torch.cuda.")) if isinstance(kind, str) else kind
        if isinstance(chosen, TensorType):
            torch.set_default_dtype(chosen.dtype)
            torch.set_default_device("dipu")
        else:
            original(kind)

    return call


def _dtype(name: str) -> torch.dtype:
    return getattr(torch, name).dtype  # type: ignore[no-any-return]

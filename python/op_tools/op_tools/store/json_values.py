"""Arguments that are no tensors, as JSON holds them, and back."""

import math
from typing import Any

import torch

_SYMBOLIC: dict[Any, Any] = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}
_KINDS = {"dtype": torch.dtype, "layout": torch.layout, "memory_format": torch.memory_format}


def to_json(value: Any) -> Any:
    """Raises TypeError for what cannot be held."""
    if value is None or isinstance(value, bool | str) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, complex):
        return {"complex": [str(value.real), str(value.imag)]}
    for name, kind in _KINDS.items():
        if isinstance(value, kind):
            return {name: str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    for kind, plain in _SYMBOLIC.items():
        if isinstance(value, kind):
            return to_json(plain(value))
    raise TypeError(f"a value of {type(value).__name__} cannot be kept")


def from_json(value: Any, device: torch.device) -> Any:
    """`device` stands for every device that was named but the CPU."""
    if not isinstance(value, dict):
        return value
    ((name, content),) = value.items()
    match name:
        case "float":
            return float(content)
        case "complex":
            return complex(*map(float, content))
        case "device":
            return torch.device(content) if content == "cpu" else device
        case "dtype" | "layout" | "memory_format":
            found = getattr(torch, content, None)
            if not isinstance(found, _KINDS[name]):
                raise ValueError(f"torch has no {name} '{content}'")
            return found
    raise ValueError(f"'{name}' is no kind of value")

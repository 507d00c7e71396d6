"""Arguments and results as people read them and as JSON holds them: what a tensor looks like, not what is in it."""

from typing import Any

import torch

from op_tools.values import mapped


def short(value: Any) -> str:
    """ex) "float32[2, 3] strides [1, 2] on dipu:0", "0.5", "[float32[4], float32[4]]"."""
    if isinstance(value, torch.Tensor):
        strides = (
            "" if value.layout is not torch.strided or value.is_contiguous() else f" strides {list(value.stride())}"
        )
        device = "" if value.device.type == "cpu" else f" on {value.device}"
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}{strides}{device}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(short(entry) for entry in value)}]"
    return str(value)


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

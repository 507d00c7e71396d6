"""The device that a call runs on."""

from collections.abc import Callable
from typing import Any

import torch

from op_tools.calls import OperatorCall
from op_tools.values import tensors_in

CPU = torch.device("cpu")


def accelerator() -> str:
    """The type of the accelerator that is there, e.g. "dipu"; "cpu" where there is none."""
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return "cpu" if found is None else found.type


def device_of(call: OperatorCall) -> torch.device | None:
    """The one device of a call's tensors and results; None where there are several, as in copies between devices.

    Numbers held by tensors of the CPU go with any device.
    """
    named = {value for value in call.kwargs.values() if isinstance(value, torch.device)}
    tensors = [tensor for _, tensor in tensors_in(call.given)]
    found = {tensor.device for tensor in tensors if tensor.device.type != "cpu" or tensor.dim()} | {*map(_whole, named)}
    if len(found) > 1:
        return None
    return next(iter(found)) if found else CPU


def _whole(device: torch.device) -> torch.device:
    """`device` with its number."""
    if device.type == "cpu" or device.index is not None:
        return device
    return torch.device(device.type, torch.get_device_module(device.type).current_device())


def synchronize(value: Any) -> None:
    """Waits for the devices of the tensors in `value`."""
    for kind in dict.fromkeys(tensor.device.type for _, tensor in tensors_in(value)):
        if kind not in ("cpu", "meta"):
            torch.get_device_module(kind).synchronize()


def fallback_counter(device: torch.device) -> Callable[..., None] | None:
    """How a backend counts what ran on the CPU in its stead, torch.dipu.fallback.add; None for those that do not."""
    ledger = getattr(torch.get_device_module(device.type), "fallback", None)
    return getattr(ledger, "add", None)

"""Choosing and describing devices."""

from dataclasses import dataclass
from types import TracebackType
from typing import Any

import torch

from torch_dipu import _native
from torch_dipu.dipu import backward_threads

_C = _native.load()

Device = torch.device | int | str | None


def _is_in_bad_fork() -> bool:
    """Whether the parent had used the device before it forked: threads and streams do not survive a fork."""
    return bool(_C.in_bad_fork())


def refuse_bad_fork() -> None:
    """Raises RuntimeError in such a child."""
    if _is_in_bad_fork():
        raise RuntimeError("dipu cannot be used in a forked process; start workers with the method 'spawn'")


def _lazy_init() -> None:
    """Called by torch before it makes the first tensor on the device."""
    refuse_bad_fork()
    _C.use_device()
    backward_threads.register()


def init() -> None:
    """Make the device ready; its first use does that, too."""
    _lazy_init()


def is_initialized() -> bool:
    """Whether this process uses the device. Importing torch does not: a process that is forked after it may."""
    return bool(_C.device_in_use())


def is_available() -> bool:
    return device_count() > 0


def device_count() -> int:
    return int(_C.device_count())


def current_device() -> int:
    return int(_C.current_device())


def device_index(device: Device = None) -> int:
    """The index that a device, an index, or None for the current device stands for. Raises ValueError for others."""
    if device is None:
        return current_device()
    if isinstance(device, int):
        return current_device() if device == -1 else device
    named = torch.device(device)
    if named.type != "dipu":
        raise ValueError(f"expected a dipu device, not '{named}'")
    return current_device() if named.index is None else named.index


def set_device(device: Device) -> None:
    _C.set_device(device_index(device))


def synchronize(device: Device = None) -> None:
    """Wait until all work on the device is done."""
    _C.synchronize_device(device_index(device))


def _exchange_device(device: int) -> int:
    """Make a device current, and return the one before; a negative index changes nothing."""
    before = current_device()
    if device >= 0:
        _C.set_device(device)
    return before


_maybe_exchange_device = _exchange_device  # torch.cuda's second one spares the start of a device


class device:
    """A context in which another device is current; a negative index changes nothing."""

    def __init__(self, device: Any) -> None:
        self.idx = device if isinstance(device, int) else device_index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = _exchange_device(self.idx)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _C.set_device(self.prev_idx)


class device_of(device):
    """A context in which the device of a tensor is current; nothing changes for a tensor elsewhere."""

    def __init__(self, tensor: torch.Tensor) -> None:
        super().__init__(tensor.get_device() if tensor.device.type == "dipu" else -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceProperties:
    name: str  # e.g. "droplet"
    total_memory: int  # bytes
    multi_processor_count: int
    major: int
    minor: int


def get_device_properties(device: Device = None) -> DeviceProperties:
    name, total_memory, processors, major, minor = _C.device_properties(device_index(device))
    return DeviceProperties(
        name=name, total_memory=total_memory, multi_processor_count=processors, major=major, minor=minor
    )


def get_arch_list() -> list[str]:
    """The architectures that kernels were compiled for: none here, since all kernels are in the vendor's library."""
    return []


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether tensors of bfloat16 can be computed with, on the device or, with emulation, at least on the CPU."""
    return is_available()


def is_tf32_supported() -> bool:
    """Whether float32 is multiplied with fewer bits on request: never."""
    return False


def get_device_name(device: Device = None) -> str:
    return get_device_properties(device).name


def get_device_capability(device: Device = None) -> tuple[int, int]:
    properties = get_device_properties(device)
    return properties.major, properties.minor

"""Device memory: what tensors use, what the cache holds, and giving the cache back."""

from collections import OrderedDict
from typing import Any

import torch

from torch_dipu import _native
from torch_dipu.dipu.devices import Device, device_index

_C = _native.load()


def empty_cache() -> None:
    """Give all cached memory that no tensor uses back to the device."""
    torch.accelerator.empty_cache()


def memory_stats(device: Device = None) -> OrderedDict[str, Any]:
    return torch.accelerator.memory_stats(device_index(device))


def memory_allocated(device: Device = None) -> int:
    """Bytes that tensors use."""
    return torch.accelerator.memory_allocated(device_index(device))


def max_memory_allocated(device: Device = None) -> int:
    return torch.accelerator.max_memory_allocated(device_index(device))


def memory_reserved(device: Device = None) -> int:
    """Bytes that tensors use and the cache holds."""
    return torch.accelerator.memory_reserved(device_index(device))


def max_memory_reserved(device: Device = None) -> int:
    return torch.accelerator.max_memory_reserved(device_index(device))


def reset_peak_memory_stats(device: Device = None) -> None:
    torch.accelerator.reset_peak_memory_stats(device_index(device))


def reset_accumulated_memory_stats(device: Device = None) -> None:
    torch.accelerator.reset_accumulated_memory_stats(device_index(device))


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """Free and total bytes of the device, as the vendor reports them."""
    free, total = _C.memory_info(device_index(device))
    return int(free), int(total)


def memory_snapshot(device: Device = None) -> list[dict[str, Any]]:
    """The blocks of a device in the order of their addresses."""
    return [
        {
            "address": address,
            "total_size": size,
            "requested_size": requested,
            "stream": stream,
            "state": state,
        }
        for address, size, requested, stream, state in _C.memory_snapshot(device_index(device))
    ]


def memory_summary(device: Device = None) -> str:
    """A table of the memory figures, one line each."""
    index = device_index(device)
    stats = memory_stats(index)
    lines = [f"memory of dipu:{index}", f"{'':<18}{'current':>16}{'peak':>16}"]
    for label, key in (("tensors", "allocated"), ("requested", "requested"), ("reserved", "reserved")):
        current, peak = stats[f"{key}_bytes.all.current"], stats[f"{key}_bytes.all.peak"]
        lines.append(f"{label + ', bytes':<18}{current:>16,}{peak:>16,}")
    lines.append(f"{'blocks':<18}{stats['allocation.all.current']:>16,}{stats['allocation.all.peak']:>16,}")
    lines.append(f"retries after emptying the cache: {stats['num_alloc_retries']}; out of memory: {stats['num_ooms']}")
    return "\n".join(lines)

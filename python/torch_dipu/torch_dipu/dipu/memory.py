"""Device memory: what tensors use, what the cache holds, and giving the cache back."""

import atexit
from collections import OrderedDict
from dataclasses import dataclass
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


def device_memory_used(device: Device = None) -> int:
    """Bytes of the device that are in use, by whatever program."""
    free, total = mem_get_info(device)
    return total - free


def get_allocator_backend() -> str:
    """Always "native": the backend's own caching allocator."""
    return "native"


# What torch's tools for snapshots call the states of a block.
_STATES = {"allocated": "active_allocated", "waiting": "active_pending_free", "free": "inactive"}


def memory_snapshot(device: Device = None) -> list[dict[str, Any]]:
    """The memory that was taken from a device, in the order of the addresses; each is one block, never split.

    The keys are those of other accelerators, and ``state``: "allocated", "waiting" for streams that used it, "free".
    ``frames``, innermost first, are there for what was allocated after :func:`record_memory_history`.
    """
    index = device_index(device)
    return [
        _segment(index, address, size, requested, stream, state, frames)
        for address, size, requested, stream, state, frames in _C.memory_snapshot(index)
    ]


def _segment(
    device: int, address: int, size: int, requested: int, stream: int, state: str, frames: list[tuple[str, int, str]]
) -> dict[str, Any]:
    named = [{"filename": file, "line": line, "name": function} for file, line, function in frames]
    block = {
        "address": address,
        "size": size,
        "requested_size": requested if state == "allocated" else 0,
        "state": _STATES[state],
        "frames": named,
    }
    return {
        "device": device,
        "address": address,
        "total_size": size,
        "allocated_size": size if state == "allocated" else 0,
        "active_size": 0 if state == "free" else size,
        "requested_size": requested,
        "stream": stream,
        "state": state,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": named,
        "blocks": [block],
    }


def record_memory_history(enabled: bool = True) -> None:
    """Note the Python stack of each allocation from now on, for :func:`memory_snapshot`; some 10 us each."""
    _C.record_stacks(enabled)


def memory_stats_as_nested_dict(device: Device = None) -> dict[str, Any]:
    """:func:`memory_stats`, a dictionary for each part of the keys."""
    nested: dict[str, Any] = {}
    for key, value in memory_stats(device).items():
        *parents, last = key.split(".")
        level = nested
        for parent in parents:
            level = level.setdefault(parent, {})
        level[last] = value
    return nested


def set_per_process_memory_fraction(fraction: float, device: Device = None) -> None:
    """Let this process reserve only a part, 0 to 1, of the device's memory; beyond it memory counts as full."""
    _C.set_memory_fraction(device_index(device), fraction)


def get_per_process_memory_fraction(device: Device = None) -> float:
    return float(_C.memory_fraction(device_index(device)))


def caching_allocator_alloc(size: int, device: Device = None, stream: torch.Stream | int | None = None) -> int:
    """The address of ``size`` bytes without a tensor, for :func:`caching_allocator_delete` later.

    ``stream``, or its id, is the one whose order the memory is reused in: the current one unless given.
    """
    index = device_index(device)
    if stream is None:
        stream = torch.accelerator.current_stream(torch.device("dipu", index))
    return int(_C.allocate_raw(index, size, stream if isinstance(stream, int) else stream.stream_id))


def caching_allocator_delete(mem_ptr: int) -> None:
    """Give such memory back. Raises RuntimeError when nothing is allocated at the address."""
    _C.free_raw(mem_ptr)


def host_memory_stats() -> dict[str, int]:
    """Pinned host memory: ``allocated_bytes``, ``active_bytes`` and counts; current, peak and totals."""
    return dict(sorted(_C.host_memory_stats().items()))


def reset_peak_host_memory_stats() -> None:
    _C.reset_peak_host_memory_stats()


def reset_accumulated_host_memory_stats() -> None:
    _C.reset_accumulated_host_memory_stats()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryReport:
    """What the memory check knows now: faults so far, and memory in use with the stacks of its allocation."""

    faults: tuple[str, ...]
    in_use: str

    def __str__(self) -> str:
        return "".join(self.faults) + ("in use:\n" + self.in_use if self.in_use else "no memory is in use\n")


def memory_check() -> MemoryReport:
    """The report of ``DIPU_MEM_CHECK=1`` up to now. Raises RuntimeError when the check is off."""
    if not _C.checking_memory():
        raise RuntimeError("the memory check is off; start the process with DIPU_MEM_CHECK=1")
    return MemoryReport(faults=tuple(_C.memory_faults()), in_use=_C.memory_in_use())


if _C.checking_memory():
    # The report at exit is written after Python has ended, when frames can no longer become text.
    atexit.register(_C.settle_stacks)


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

"""What the process holds: bytes of the C heap, where they are counted, and of the device, threads, files, processes."""

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from diopi_conformance.process.reaper import children

SHARED = "device bytes"  # what other processes take and give back shows here, too
_FEWEST = 64  # bytes that count: Python's own lists grow now and then
_OBJECT = sys.getsizeof(b"")
_SMALL = 512  # bytes up to which Python has pools of its own
_MAPPED = 128 * 1024  # bytes from which an allocation may be pages of its own
_PAGE = 4096
_CHUNK = 23  # glibc's header, and rounding up to 16


class _Heap(ctypes.Structure):
    """glibc's struct mallinfo2."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    )


class Footprint:
    """Takes the counts, and their growth."""

    def __init__(self, used_memory: Callable[[], int | None]) -> None:
        """`used_memory` gives the bytes of the device that are in use, or None."""
        self._used_memory = used_memory
        process = ctypes.CDLL(None)
        self._mallinfo = getattr(process, "mallinfo2", None)
        if self._mallinfo is not None:
            self._mallinfo.restype = _Heap

    def now(self) -> dict[str, int]:
        """e.g. {"bytes": 123456, "threads": 2, "files": 7, "device bytes": 4096}."""
        counts = {name: len(os.listdir(path)) for name, path in _LISTED.items() if path.is_dir()}
        counts["processes"] = len(children(os.getpid())) + len(children(os.getppid()))  # its own and its keeper's
        if self._mallinfo is not None:
            heap = self._mallinfo()
            counts["bytes"] = heap.uordblks + heap.hblkhd  # in arenas, and mapped
        if (used := self._used_memory()) is not None:
            counts[SHARED] = used
        return counts

    def since(self, before: dict[str, int], held: Sequence[bytes] = ()) -> dict[str, int]:
        """What there is more of now than before, but for `held`, which the caller has made in between."""
        found = {name: count - before[name] for name, count in self.now().items() if name in before}
        if "bytes" in found:
            found["bytes"] -= sum(_taken(len(blob)) for blob in held)
        return {name: count for name, count in found.items() if count >= (_FEWEST if name == "bytes" else 1)}


def _taken(size: int) -> int:
    """What a bytes object of `size` bytes takes of the heap; Python keeps the small ones elsewhere."""
    whole = size + _OBJECT
    if whole <= _SMALL:
        return 0
    if whole >= _MAPPED:
        return (whole // _PAGE + 2) * _PAGE
    return (whole + _CHUNK) // 16 * 16


_LISTED = {"threads": Path("/proc/self/task"), "files": Path("/proc/self/fd")}

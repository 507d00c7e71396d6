"""What the process holds: bytes of the C heap where the C library counts them, threads, open files."""

import ctypes
import os
from pathlib import Path

_FEWEST = 64  # bytes that count: Python's own lists grow now and then


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

    def __init__(self) -> None:
        process = ctypes.CDLL(None)
        self._mallinfo = getattr(process, "mallinfo2", None)
        if self._mallinfo is not None:
            self._mallinfo.restype = _Heap

    def now(self) -> dict[str, int]:
        """ex) {"bytes": 123456, "threads": 2, "files": 7}."""
        counts = {name: len(os.listdir(path)) for name, path in _LISTED.items() if path.is_dir()}
        if self._mallinfo is not None:
            heap = self._mallinfo()
            counts["bytes"] = heap.uordblks + heap.hblkhd  # in arenas, and mapped
        return counts

    def since(self, before: dict[str, int]) -> dict[str, int]:
        """What there is more of now than before."""
        return {
            name: count - before[name]
            for name, count in self.now().items()
            if count - before[name] >= (_FEWEST if name == "bytes" else 1)
        }


_LISTED = {"threads": Path("/proc/self/task"), "files": Path("/proc/self/fd")}

"""The leak sanitizer of a process into which it was loaded before all else; without it nothing is watched or found."""

import ctypes
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# The frame above malloc, e.g. "    #1 0x55 in _PyObject_GC_Alloc Modules/gcmodule.c:2275"
_PYTHON = re.compile(r"^\s*#1 \S+ in (?:_?Py|.* (?:Modules|Objects|Python)/)", re.MULTILINE)


class LeakSanitizer:
    """Watches what this thread allocates only where it is told to: Python gives back not all of its own memory.

    Other threads, as those of a device, are watched always.
    """

    def __init__(self) -> None:
        process = ctypes.CDLL(None)
        if hasattr(process, "__lsan_disable"):
            self._enable: Callable[[], object] = getattr(process, "__lsan_enable")
            self._disable: Callable[[], object] = getattr(process, "__lsan_disable")
            self._check: Callable[[], int] = getattr(process, "__lsan_do_recoverable_leak_check")
        else:
            self._enable = self._disable = self._check = lambda: 0
        self._disable()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """What is allocated in here must be reachable when the process ends."""
        self._enable()
        try:
            yield
        finally:
            self._disable()

    def found(self) -> str:
        """What nobody can reach by now, in the sanitizer's words; empty where there is nothing."""
        with tempfile.TemporaryFile() as told:
            usual = os.dup(2)
            os.dup2(told.fileno(), 2)
            try:
                leaked = self._check() != 0
            finally:
                os.dup2(usual, 2)
                os.close(usual)
            told.seek(0)
            return without_python(told.read().decode(errors="replace")) if leaked else ""


def without_python(told: str) -> str:
    """What the sanitizer told, without the leaks that Python made while somebody watched; empty if there are no others.

    A leak is Python's if one of its allocators asked for the memory.
    """
    head, *leaks = re.split(r"(?m)^(?=(?:Direct|Indirect) leak of )", told)
    others = [leak for leak in leaks if not re.search(_PYTHON, leak)]
    return head + "".join(others) if others else ""

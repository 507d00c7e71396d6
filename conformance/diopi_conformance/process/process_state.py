"""What a call must leave as it was in its process: folder, mask of files, descriptors, signals, environment."""

import ctypes
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass, fields

_ACTION = 256  # bytes with room for a struct sigaction, which begins with the handler
# Those with a meaning; the C library keeps some of the others for itself.
_SIGNALS = sorted(int(number) for number in signal.valid_signals() if number < signal.SIGRTMIN)
_REGISTERED = b"__KMP_REGISTERED_LIB"  # LLVM's OpenMP runtime tells itself by a variable that it is there


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    folder: str
    mask: int
    descriptors: tuple[tuple[int, int], ...]  # device and inode of each
    handlers: bytes  # of each signal
    environment: dict[bytes, bytes]


_NAMES = {
    "folder": "the working folder",
    "mask": "the file mode mask",
    "descriptors": "descriptors",
    "handlers": "signal handlers",
    "environment": "environment variables",
}
DESCRIPTORS = _NAMES["descriptors"]  # which cannot be put back


class ProcessState:
    """Those that are there when it is made."""

    def __init__(self, descriptors: Sequence[int]) -> None:
        """`descriptors` are those by which the process speaks with others."""
        self._libc = ctypes.CDLL(None)
        self._variables = ctypes.POINTER(ctypes.c_char_p).in_dll(self._libc, "environ")
        self._descriptors = descriptors
        self._actions = ctypes.create_string_buffer(_ACTION * len(_SIGNALS))
        first = ctypes.addressof(self._actions)
        self._places = [(number, ctypes.c_void_p(first + at * _ACTION)) for at, number in enumerate(_SIGNALS)]
        words = memoryview(self._actions).cast("B").cast("P")
        self._handlers = words[:: _ACTION // words.itemsize]
        self._usual = self._now()
        self._usual_actions = self._actions.raw

    def changed(self) -> list[str]:
        """What has changed, e.g. ["the working folder"]; all but descriptors is put back."""
        now = self._now()
        if now == self._usual:
            return []
        found = [field.name for field in fields(now) if getattr(now, field.name) != getattr(self._usual, field.name)]
        self._put_back(now)
        return [_NAMES[name] for name in found]

    def _now(self) -> _State:
        mask = os.umask(0o077)
        os.umask(mask)
        for number, place in self._places:
            self._libc.sigaction(number, None, place)
        try:
            folder = os.getcwd()
        except OSError:
            folder = ""  # it was removed
        return _State(
            folder=folder,
            mask=mask,
            descriptors=tuple(map(_identity, self._descriptors)),
            handlers=self._handlers.tobytes(),
            environment=self._environment(),
        )

    def _environment(self) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        at = 0
        while self._variables and (text := self._variables[at]) is not None:
            name, _, value = text.partition(b"=")
            if not name.startswith(_REGISTERED):
                found[name] = value
            at += 1
        return found

    def _put_back(self, now: _State) -> None:
        if now.folder != self._usual.folder and self._usual.folder:
            os.chdir(self._usual.folder)
        os.umask(self._usual.mask)
        self._actions.raw = self._usual_actions
        for number, place in self._places:
            self._libc.sigaction(number, place, None)
        for name in now.environment.keys() - self._usual.environment.keys():
            self._libc.unsetenv(name)
        for name, value in self._usual.environment.items():
            self._libc.setenv(name, value, 1)


def _identity(descriptor: int) -> tuple[int, int]:
    try:
        status = os.fstat(descriptor)
    except OSError:
        return -1, -1
    return status.st_dev, status.st_ino

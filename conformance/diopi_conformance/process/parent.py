"""Processes that end with the one that started them."""

import ctypes
import signal

_PR_SET_PDEATHSIG = 1


def die_with_parent(by: signal.Signals = signal.SIGKILL) -> None:
    """A library that hangs, or a compiler at work, would outlive a runner that was killed."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "prctl"):
        libc.prctl(_PR_SET_PDEATHSIG, by)

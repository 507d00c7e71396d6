"""Operators that run on the CPU: counted with their cause, forced there, or forbidden to go there.

The backend counts its own fallbacks; a tool that runs operators of dipu on the CPU itself counts them here with add().

Lists name overloads, operators or regular expressions, e.g. ``"add.out"``, ``"softmax"``, ``"conv.*"``.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from torch_dipu import _native

_C = _native.load()

_FORCE = 8  # the control bit of operators that run on the CPU only


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    operator: str  # e.g. "aten::histc"
    cause: str  # e.g. "no kernel", "forced", "drifted: ...", "diopiHistc: dtype not supported"
    count: int
    bytes: int  # copied between device and host
    seconds: float  # spent on the host, copies included


_added: dict[tuple[str, str], Fallback] = {}  # by operator and cause
_lock = threading.Lock()


def report() -> list[Fallback]:
    """The fallbacks since the last reset, the most frequent first."""
    found = {
        (operator, cause): Fallback(operator=operator, cause=cause, count=count, bytes=size, seconds=seconds)
        for operator, cause, count, size, seconds in _C.fallback_report()
    }
    with _lock:
        for key, row in _added.items():
            found[key] = _sum(found[key], row) if key in found else row
    return sorted(found.values(), key=lambda row: (-row.count, row.operator, row.cause))


def add(operator: str, cause: str, *, bytes: int, seconds: float) -> None:
    """Counts a call of an operator of dipu that a tool above the backend has run on the CPU, as report() has it.

    `bytes` were copied between device and host, in `seconds` on the host. What a tool does is asked for by the program:
    strict mode and deny() do not hold for it.
    """
    row = Fallback(operator=operator, cause=cause, count=1, bytes=bytes, seconds=seconds)
    with _lock:
        key = operator, cause
        _added[key] = _sum(_added[key], row) if key in _added else row


def reset() -> None:
    """Forget the counts."""
    _C.reset_fallbacks()
    with _lock:
        _added.clear()


def _sum(a: Fallback, b: Fallback) -> Fallback:
    return replace(a, count=a.count + b.count, bytes=a.bytes + b.bytes, seconds=a.seconds + b.seconds)


def set(*operators: str) -> list[str]:
    """Run these operators on the CPU, forward and backward, and no others; without arguments, none.

    Operators that torch composes of others are forced as a whole. Returns the overloads that match. Raises ValueError
    for a malformed expression.
    """
    return list(_C.set_control(",".join(operators), _FORCE))


def allow(*operators: str) -> None:
    """Let these operators fall back in strict mode; without arguments, none."""
    strict_mode, _, denied = _C.fallback_policy()
    _C.set_fallback_policy(strict_mode, ",".join(operators), denied)


def deny(*operators: str) -> None:
    """Make it an error if these operators fall back, strict or not; without arguments, none."""
    strict_mode, allowed, _ = _C.fallback_policy()
    _C.set_fallback_policy(strict_mode, allowed, ",".join(operators))


@contextmanager
def strict(enabled: bool = True) -> Iterator[None]:
    """A context in which an operator that would fall back raises NotImplementedError, which names it."""
    before, allowed, denied = _C.fallback_policy()
    _C.set_fallback_policy(enabled, allowed, denied)
    try:
        yield
    finally:
        _, allowed, denied = _C.fallback_policy()
        _C.set_fallback_policy(before, allowed, denied)


def set_strict(enabled: bool) -> None:
    """The same for the rest of the process."""
    _, allowed, denied = _C.fallback_policy()
    _C.set_fallback_policy(enabled, allowed, denied)

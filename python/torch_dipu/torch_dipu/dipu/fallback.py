"""Operators that run on the CPU because the device has no kernel for them: counted, and an error on request."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from torch_dipu import _native

_C = _native.load()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    operator: str  # ex) "aten::histc"
    cause: str  # ex) "no kernel"
    count: int


def report() -> list[Fallback]:
    """The fallbacks since the last reset, the most frequent first."""
    return [Fallback(operator=operator, cause=cause, count=count) for operator, cause, count in _C.fallback_report()]


def reset() -> None:
    """Forget the counts."""
    _C.reset_fallbacks()


@contextmanager
def strict(enabled: bool = True) -> Iterator[None]:
    """A context in which an operator that would fall back raises NotImplementedError, which names it."""
    before = _C.strict_fallback()
    _C.set_strict_fallback(enabled)
    try:
        yield
    finally:
        _C.set_strict_fallback(before)


def set_strict(enabled: bool) -> None:
    """The same for the rest of the process."""
    _C.set_strict_fallback(enabled)


def allow(*operators: str) -> None:
    """Let these operators, ex) "aten::histc", fall back in strict mode; without arguments, none."""
    _C.set_allowed_fallbacks(set(operators))

"""What is wrong with a reply, and how good an output that is right is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that is wrong."""

    message: str
    output: str = ""
    index: tuple[int, ...] = ()
    error: float | None = None
    ulp: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Closeness:
    """The largest errors of an output that is right."""

    error: float = 0.0
    ulp: float | None = None  # None where the output is no float

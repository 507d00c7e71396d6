"""Debug features of operators, switched while the process runs: dump, compare with the CPU, synchronize, force the CPU.

Patterns are regular expressions over whole overload names, ex) ``add\\..*``; an empty pattern switches a feature off.
"""

from dataclasses import dataclass

from torch_dipu import _native

_C = _native.load()

_DUMP, _COMPARE, _SYNCHRONIZE, _FORCE_FALLBACK = 1, 2, 4, 8


def dump(pattern: str, level: int = 1) -> list[str]:
    """Print the arguments: 1 shapes, 2 and ranges of values, 3 and values. Returns the operators that match."""
    _C.set_dump_level(level)
    return list(_C.set_control(pattern, _DUMP))


def compare(pattern: str, *, raises: bool = False) -> list[str]:
    """Run on the CPU too and compare. Returns the operators that match."""
    _C.set_comparison_raises(raises)
    return list(_C.set_control(pattern, _COMPARE))


def synchronize(pattern: str) -> list[str]:
    """Wait for the device after each operator, so that an asynchronous failure shows where it happens."""
    return list(_C.set_control(pattern, _SYNCHRONIZE))


def force_fallback(pattern: str) -> list[str]:
    """Run on the CPU only."""
    return list(_C.set_control(pattern, _FORCE_FALLBACK))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    operator: str
    runs: int
    differences: int
    largest: float  # absolute difference among those beyond tolerance


def comparisons() -> list[Comparison]:
    return [
        Comparison(operator=operator, runs=runs, differences=differences, largest=largest)
        for operator, runs, differences, largest in _C.comparison_report()
    ]


def reset_comparisons() -> None:
    _C.reset_comparisons()


def native_operators() -> list[str]:
    """The overloads that run on the device."""
    return list(_C.native_operators())


def unavailable_operators() -> list[tuple[str, str]]:
    """Overloads that have a wrapper, each with the function that the vendor library lacks."""
    return list(_C.unavailable_operators())

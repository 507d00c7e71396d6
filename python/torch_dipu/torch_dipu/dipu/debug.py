"""Debug features of operators, switched while the process runs: dump, compare with the CPU, synchronize.

Lists name overloads, operators or regular expressions, e.g. ``"add.out"``, ``"softmax"``, ``"conv.*"``; without any, a
feature is off.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from torch_dipu import _native
from torch_dipu.dipu.mismatch import COMPARE, Mismatch, replay, saver

_C = _native.load()

_DUMP, _SYNCHRONIZE = 1, 4

__all__ = [
    "Comparison",
    "Mismatch",
    "autocompare",
    "comparisons",
    "derived_operators",
    "drifted_operators",
    "dump",
    "native_operators",
    "replay",
    "reset_comparisons",
    "synchronize",
    "unavailable_operators",
]


def dump(*ops: str, level: int = 2, format: str = "text", path: str | os.PathLike[str] = "") -> list[str]:
    """Print what operators are called with, or append it to `path`.

    `level` is 1 for the names, 2 also for the arguments, 3 also for tensors' values; `format` is "text", or "json" for
    a line of JSON for each call. Returns the operators that match. Raises ValueError for another level or format.
    """
    if format not in ("text", "json"):
        raise ValueError(f"format is 'text' or 'json', not '{format}'")
    _C.set_dump_style(level, format == "json", os.fspath(path))
    return list(_C.set_control(",".join(ops), _DUMP))


def autocompare(
    *, ops: str | list[str] = "", on_mismatch: str = "log", folder: str | os.PathLike[str] = "dipu_mismatches"
) -> list[str]:
    """Run operators on the CPU too, in float64 where it can, and compare results and what was written or only read.

    `on_mismatch` is "log" (a line on stderr), "raise" (RuntimeError) or "dump" (also a file in `folder` for each
    mismatch, which `replay` runs again). Random operators are left out. Returns the operators that match.
    """
    _C.set_on_mismatch(on_mismatch)
    _C.set_mismatch_handler(saver(Path(folder)))
    return list(_C.set_control(ops if isinstance(ops, str) else ",".join(ops), COMPARE))


def synchronize(*ops: str) -> list[str]:
    """Wait for the device after each operator, so that an asynchronous failure shows where it happens."""
    return list(_C.set_control(",".join(ops), _SYNCHRONIZE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    operator: str
    runs: int
    differences: int  # runs with a mismatch
    skipped: int  # runs that the CPU cannot repeat
    worst: Mismatch | None


def comparisons() -> list[Comparison]:
    """What autocompare has seen since the last reset, by operator."""
    return [
        Comparison(
            operator=operator,
            runs=runs,
            differences=differences,
            skipped=skipped,
            worst=None if worst is None else Mismatch(**worst),
        )
        for operator, runs, differences, skipped, worst in _C.comparison_report()
    ]


def reset_comparisons() -> None:
    _C.reset_comparisons()


def native_operators() -> list[str]:
    """The overloads that run on the device."""
    return list(_C.native_operators())


def derived_operators() -> dict[str, list[str]]:
    """The overloads that run on the device as a composition of others, each with those that it needs there."""
    return dict(_C.derived_operators())


def drifted_operators() -> dict[str, str]:
    """Overloads that were left out when the backend was built, each with what the torch of that build declares.

    A supported release of torch has them, but this one lacks them or declares them otherwise: they run on the CPU. What
    is written by hand in one file with such an operator is left out with it.
    """
    return dict(_C.drifted_operators())


def unavailable_operators() -> list[tuple[str, str]]:
    """Overloads with a wrapper, each with what the vendor library lacks: a function, or an operator made of some."""
    return list(_C.unavailable_operators())


# Where the environment asks for dumps of mismatches.
_C.set_mismatch_handler(saver(Path(os.environ.get("DIPU_AUTOCOMPARE_FOLDER", "dipu_mismatches"))))

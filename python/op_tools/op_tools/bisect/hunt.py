"""The hunt as a whole: two runs, a search over the operators, and a comparison of the calls of the one it finds."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from op_tools.bisect.metric import Parting, parting
from op_tools.bisect.reproduction import write_reproduction
from op_tools.bisect.search import culprits
from op_tools.bisect.trial import Script
from op_tools.store.reader import Capture, captures


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was found."""

    parting: Parting | None  # where the device leaves the CPU; None where it does not
    operators: tuple[str, ...]  # one; several that are bad only together
    mismatch: dict[str, Any] | None  # the first wrong call: see op_tools.tools.compare.Mismatch
    reproduction: Path | None
    runs: int
    searched: int  # operators that ran on the device


def hunt(script: Script, rtol: float, folder: Path, tell: Callable[[str], object]) -> Verdict:
    """Finds the operator that moves the metric. `folder` gets the captured call and a program that repeats it.

    Raises BrokenRun where the script does not run on the CPU.
    """
    good, record = script.with_fallback(but=())
    operators = tuple(record.get("fallback", {}).get("calls", {}))
    tell(f"on the CPU: {len(good)} values, {len(operators)} operators")
    parted = parting(good, script.plain(), rtol)
    if parted is None:
        return _verdict(script, None, (), None, None, len(operators))
    tell(f"on the device: value {parted.step} is {parted.bad:.9g}, not {parted.good:.9g}")

    def is_bad(some: Any) -> bool:
        values, _ = script.with_fallback(but=tuple(some))
        bad = parting(good, values, rtol) is not None
        tell(f"run {script.runs}: {len(some)} operators on the device: {'bad' if bad else 'good'}")
        return bad

    found = tuple(culprits(operators, is_bad))
    mismatches = script.compared(found, folder) if found else []
    first = mismatches[0] if mismatches else None
    program = None if first is None else _reproduction(folder, first)
    return _verdict(script, parted, found, first, program, len(operators))


def _verdict(
    script: Script,
    parted: Parting | None,
    operators: tuple[str, ...],
    mismatch: dict[str, Any] | None,
    program: Path | None,
    searched: int,
) -> Verdict:
    return Verdict(
        parting=parted,
        operators=operators,
        mismatch=mismatch,
        reproduction=program,
        runs=script.runs,
        searched=searched,
    )


def _reproduction(folder: Path, mismatch: dict[str, Any]) -> Path | None:
    capture: Capture | None = next((c for c in captures(folder) if c.record["number"] == mismatch["number"]), None)
    if capture is None:
        return None
    return write_reproduction(
        folder,
        folder=capture.folder,
        operator=capture.operator,
        message=mismatch["text"],
        given=mismatch["given"],
        device=capture.record["device"].partition(":")[0],
    )

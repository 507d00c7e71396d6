"""A bisection: two runs, a search over the operators, and a comparison of the calls of the one it finds."""

from collections.abc import Callable, Sequence
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


@dataclass(kw_only=True)
class Bisection:
    """Finds the operator that moves the metric. `folder` gets the captured call and a program that repeats it.

    Runs that are good are made up to `trials` times where a fault seems to show at times only.
    """

    script: Script
    rtol: float
    folder: Path
    trials: int
    tell: Callable[[str], object]

    def verdict(self) -> Verdict:
        """Raises BrokenRun where the script does not run on the CPU."""
        self._good, record = self.script.with_fallback(but=())
        operators = tuple(record.get("fallback", {}).get("calls", {}))
        self.tell(f"on the CPU: {len(self._good)} values, {len(operators)} operators")
        parted = self._on_the_device()
        if parted is None:
            return self._told(None, (), [], len(operators))
        self.tell(f"on the device: value {parted.step} is {parted.bad:.9g}, not {parted.good:.9g}")
        compared: dict[str, list[dict[str, Any]]] = {}

        def confirmed(operator: str) -> bool:
            compared[operator] = self._compared([operator])
            return bool(compared[operator]) or self._is_bad([operator])

        found = tuple(culprits(operators, self._is_bad, confirmed, self.trials))
        mismatches = compared.get(found[0], []) if len(found) == 1 else []
        for _ in range(self.trials if found else 0):
            mismatches = mismatches or self._compared(found)
        return self._told(parted, found, mismatches, len(operators))

    def _on_the_device(self) -> Parting | None:
        """Where the device leaves the CPU in one of `trials` runs."""
        partings = (parting(self._good, self.script.plain(), self.rtol) for _ in range(self.trials))
        return next((found for found in partings if found is not None), None)

    def _is_bad(self, some: Sequence[str]) -> bool:
        values, _ = self.script.with_fallback(but=tuple(some))
        bad = parting(self._good, values, self.rtol) is not None
        self.tell(f"run {self.script.runs}: {len(some)} operators on the device: {'bad' if bad else 'good'}")
        return bad

    def _compared(self, operators: Sequence[str]) -> list[dict[str, Any]]:
        found = self.script.compared(operators, self.folder)
        self.tell(f"run {self.script.runs}: {', '.join(operators)} compared: {len(found)} calls are wrong")
        return found

    def _told(
        self, parted: Parting | None, operators: tuple[str, ...], mismatches: list[dict[str, Any]], searched: int
    ) -> Verdict:
        first = mismatches[0] if mismatches else None
        return Verdict(
            parting=parted,
            operators=operators,
            mismatch=first,
            reproduction=None if first is None else _reproduction(self.folder, first),
            runs=self.script.runs,
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

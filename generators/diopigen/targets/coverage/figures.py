"""The figures of a conformance run, read from its report."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

REPORT_VERSION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Cases of one function, or of all, by what became of them."""

    passed: int = 0
    lacking: int = 0  # the library has no such function, no such element type, or none that holds the values
    bad: int = 0  # failed, crashed, timed out, leaked, or unsound
    ulp: float | None = None  # the largest error of what passed, in units in the last place; None where none was told

    @property
    def cases(self) -> int:
        return self.passed + self.lacking + self.bad

    def plus(self, other: "Figures") -> "Figures":
        """These figures with those of other cases."""
        return Figures(
            passed=self.passed + other.passed,
            lacking=self.lacking + other.lacking,
            bad=self.bad + other.bad,
            ulp=max((ulp for ulp in (self.ulp, other.ulp) if ulp is not None), default=None),
        )


def _case(verdict: str, ulp: float | None) -> Figures:
    """The figures of one case."""
    match verdict:
        case "pass":
            return Figures(passed=1, ulp=ulp)
        case "not-implemented" | "skipped":
            return Figures(lacking=1)
        case _:
            return Figures(bad=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The last run of one vendor."""

    planned: int
    total: Figures
    functions: Mapping[str, Figures]  # by symbol
    types: Mapping[tuple[str, str], Figures]  # by symbol and element type; a case of two types counts for both


def conformance_run(text: str) -> Run:
    """The run that a report tells of. Raises ValueError where `text` is no report of a version that is known."""
    try:
        document = json.loads(text)
        if document["version"] != REPORT_VERSION:
            raise ValueError(f"its version is {document['version']}, not {REPORT_VERSION}")
        outcomes = [
            (str(o["function"]), str(o["elements"]), _case(str(o["verdict"]), _ulp(o["ulp"])))
            for o in document["outcomes"]
        ]
        planned = int(document["planned"])
    except (LookupError, TypeError, ArithmeticError) as error:
        raise ValueError("it is not a report") from error
    total, functions, types = Figures(), dict[str, Figures](), dict[tuple[str, str], Figures]()
    for symbol, elements, case in outcomes:
        total = total.plus(case)
        functions[symbol] = functions.get(symbol, Figures()).plus(case)
        for dtype in dict.fromkeys(elements.split("-")):  # e.g. "bool-f32"
            types[symbol, dtype] = types.get((symbol, dtype), Figures()).plus(case)
    return Run(planned=planned, total=total, functions=functions, types=types)


def _ulp(value: Any) -> float | None:
    """Infinity and NaN stand in a report as {"float": "inf"}."""
    return None if value is None else float(value["float"] if isinstance(value, dict) else value)

"""The figures of a conformance run, read from its report."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

REPORT_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Cases of one function, or of all, by what became of them."""

    passed: int = 0
    lacking: int = 0  # the library has no such function, no such element type, or none that holds the values
    bad: int = 0  # failed, crashed, timed out, or unsound

    @property
    def cases(self) -> int:
        return self.passed + self.lacking + self.bad

    def plus(self, verdict: str) -> "Figures":
        """These figures with one more case."""
        return Figures(
            passed=self.passed + (verdict == "pass"),
            lacking=self.lacking + (verdict in ("not-implemented", "skipped")),
            bad=self.bad + (verdict not in ("pass", "not-implemented", "skipped")),
        )


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
        outcomes = [(str(o["id"]), str(o["function"]), str(o["verdict"])) for o in document["outcomes"]]
        planned = int(document["planned"])
    except (KeyError, TypeError) as error:
        raise ValueError("it has not the form of a report") from error
    total, functions, types = Figures(), dict[str, Figures](), dict[tuple[str, str], Figures]()
    for case, symbol, verdict in outcomes:
        total = total.plus(verdict)
        functions[symbol] = functions.get(symbol, Figures()).plus(verdict)
        for dtype in _types(case):
            types[symbol, dtype] = types.get((symbol, dtype), Figures()).plus(verdict)
    return Run(planned=planned, total=total, functions=functions, types=types)


def _types(case: str) -> tuple[str, ...]:
    """The element types in the id of a case. ex) ("bool", "f32") of "add/diopiAdd/bool-f32/contiguous/0"."""
    parts = case.split("/")
    return tuple(dict.fromkeys(parts[2].split("-"))) if len(parts) > 2 else ()

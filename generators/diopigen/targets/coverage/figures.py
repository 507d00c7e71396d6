"""The figures of a conformance run, read from its report."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

REPORT_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Cases of one function, or of all, by what became of them."""

    passed: int = 0
    lacking: int = 0  # the library says that it has no such function or element type
    bad: int = 0  # failed, crashed, timed out, or unsound

    @property
    def cases(self) -> int:
        return self.passed + self.lacking + self.bad

    def plus(self, verdict: str) -> "Figures":
        """These figures with one more case."""
        return Figures(
            passed=self.passed + (verdict == "pass"),
            lacking=self.lacking + (verdict == "not-implemented"),
            bad=self.bad + (verdict not in ("pass", "not-implemented")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The last run of one vendor."""

    planned: int
    total: Figures
    functions: Mapping[str, Figures]  # by symbol


def conformance_run(text: str) -> Run:
    """The run that a report tells of. Raises ValueError where `text` is no report of a version that is known."""
    try:
        document = json.loads(text)
        if document["version"] != REPORT_VERSION:
            raise ValueError(f"its version is {document['version']}, not {REPORT_VERSION}")
        outcomes = [(outcome["function"], outcome["verdict"]) for outcome in document["outcomes"]]
        planned = int(document["planned"])
    except (KeyError, TypeError) as error:
        raise ValueError("it has not the form of a report") from error
    total, functions = Figures(), dict[str, Figures]()
    for symbol, verdict in outcomes:
        total = total.plus(verdict)
        functions[symbol] = functions.get(symbol, Figures()).plus(verdict)
    return Run(planned=planned, total=total, functions=functions)

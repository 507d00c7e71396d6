"""What is known of each operator, drawn together from everything that tools found."""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from diopigen.atomic import MALFORMED
from diopigen.records.codec import typed
from op_tools.phases import BACKWARD, FORWARD
from op_tools.report.sources import Sources
from op_tools.tools.compare import Mismatch
from op_tools.tools.overflow import Found
from op_tools.tools.timing import Timing

_Left: TypeAlias = list[tuple[str, str, int]]  # operator, reason, calls


@dataclass(slots=True)
class Form:
    """An operator with arguments of certain shapes and dtypes."""

    given: str  # e.g. "float32[2, 3], float32[3, 4]"
    calls: int = 0
    milliseconds: list[float] = field(default_factory=list)
    total: float = 0.0  # milliseconds of all calls, the first ones, too
    captures: list[str] = field(default_factory=list)  # folders, below the results' folder


@dataclass(slots=True)
class Operator:
    """One overload, or a function of torch where a table says no more."""

    name: str  # e.g. "aten.addmm.default"
    functions: Counter[str] = field(default_factory=Counter)  # of torch, that called it
    phases: Counter[str] = field(default_factory=Counter)  # calls that were timed
    spent: dict[str, float] = field(default_factory=lambda: defaultdict(float))  # milliseconds by phase
    forms: dict[str, Form] = field(default_factory=dict)
    bytes: int = 0  # that went in and out in all timed calls
    flop: int = 0
    results: int = 0  # that were compared
    wrong: int = 0
    absolute: float = 0.0  # the worst error
    relative: float = 0.0
    ulp: float | None = None
    ulps: list[float] = field(default_factory=list)  # the worst of each result
    fault: str = ""  # the first that was told
    fallbacks: int = 0
    left: Counter[str] = field(default_factory=Counter)  # calls that a tool left alone, by tool and reason
    overflows: int = 0
    compared_calls: int = 0
    captured: int = 0

    def form(self, given: str) -> Form:
        return self.forms.setdefault(given, Form(given))

    @property
    def timed(self) -> int:
        return sum(self.phases.values())

    @property
    def calls(self) -> int:
        """As the tool says that saw most of them."""
        return max(self.timed, self.compared_calls, self.captured, self.fallbacks)

    @property
    def total(self) -> float:
        """Milliseconds."""
        return sum(form.total for form in self.forms.values())

    def quantile(self, share: float) -> float | None:
        """Of the time of a call, in milliseconds; None where none was timed."""
        return quantile([t for form in self.forms.values() for t in form.milliseconds], share)

    def rate(self, amount: int) -> float | None:
        """`amount` of all timed calls by second, e.g. of bytes."""
        return amount / self.total * 1e3 if self.total and amount else None


def quantile(milliseconds: list[float], share: float) -> float | None:
    """The least of them that `share` of all do not exceed."""
    return float(np.quantile(milliseconds, share, method="higher")) if milliseconds else None


class Gathering:
    """The operators, by name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.found: dict[str, Operator] = {}
        self.faults: dict[str, str] = {}  # what was said of a wrong call: the operator; in the order of finding

    def operator(self, name: str) -> Operator:
        return self.found.setdefault(name, Operator(name))

    def timing(self, entry: dict[str, Any]) -> None:
        """As OpTimeMeasure writes it."""
        timing = typed(Timing, entry)
        operator = self.operator(timing.operator)
        form = operator.form(timing.given)
        operator.functions[timing.function] += timing.calls
        operator.phases[timing.phase] += timing.calls
        operator.bytes += timing.bytes * timing.calls
        operator.flop += timing.flop * timing.calls
        form.calls += timing.calls
        form.milliseconds += timing.samples
        form.total += timing.total
        operator.spent[timing.phase] += timing.total

    def time_row(self, row: dict[str, str]) -> None:
        """Of a table of times; it has neither bytes nor the operator behind the function."""
        operator = self.operator(row["name"])
        for column, phase, given in (
            ("forward_elasped", FORWARD, "input"),
            ("backward_elasped", BACKWARD, "grad_outputs"),
        ):
            if row.get(column):
                form = operator.form(row.get(given) or "")
                operator.phases[phase] += 1
                form.calls += 1
                form.milliseconds.append(float(row[column]))
                form.total += float(row[column])
                operator.spent[phase] += float(row[column])

    def compared_rows(self, rows: Iterable[dict[str, str]]) -> None:
        """Of tables of comparisons, a row for each result."""
        calls: dict[str, dict[str, None]] = {}
        for row in rows:
            title = row["name"].rpartition(" ")[0] or row["name"]
            operator = self.operator(row.get("operator") or title)
            operator.functions[title] += 0
            operator.results += 1
            calls.setdefault(operator.name, {})[row.get("forward_id", "")] = None
            operator.absolute = max(operator.absolute, _number(row.get("max_abs_diff")))
            operator.relative = max(operator.relative, _number(row.get("max_relative_diff")))
            if row.get("max_ulp"):
                operator.ulps.append(_number(row["max_ulp"]))
                operator.ulp = max(operator.ulp or 0.0, operator.ulps[-1])
            if row["allclose"].strip().lower() == "false":
                operator.wrong += 1
                operator.fault = operator.fault or row.get("error_info", "")
        for name, numbers in calls.items():
            self.operator(name).compared_calls += len(numbers)

    def record(self, record: dict[str, Any], *, with_times: bool) -> None:
        """What op-tools run wrote of its tools."""
        for entry in record.get("time", {}).get("timings", []) if with_times else ():
            self.timing(entry)
        for mismatch in record.get("compare", {}).get("mismatches", []):
            self._mismatch(mismatch)
        for tool in ("compare", "fallback"):
            for name, reason, count in typed(_Left, record.get(tool, {}).get("left", [])):
                self.operator(name).left[f"{tool}: {reason}"] += count
        for name, count in typed(dict[str, int], record.get("fallback", {}).get("calls", {})).items():
            self.operator(name).fallbacks += count
        for found in record.get("overflow", {}).get("found", []):
            self.operator(typed(Found, found).operator).overflows += 1

    def capture(self, capture: Any) -> None:
        """A captured call; one that was wrong says so."""
        operator = self.operator(capture.operator)
        operator.captured += 1
        operator.functions[capture.record["function"]] += 0
        given = ", ".join(f"{name}={text}" for name, text in capture.record["shown"].items())
        operator.form(given).captures.append(capture.folder.relative_to(self._folder).as_posix())
        if "mismatch" in capture.result:
            self._mismatch(capture.result["mismatch"])

    def _mismatch(self, entry: Any) -> None:
        mismatch = typed(Mismatch, entry)
        operator = self.operator(mismatch.operator)
        if mismatch.text in self.faults:
            return
        self.faults[mismatch.text] = operator.name
        operator.fault = operator.fault or mismatch.text
        operator.wrong = max(operator.wrong, sum(name == operator.name for name in self.faults.values()))
        for difference in mismatch.differences:
            operator.absolute = max(operator.absolute, _number(difference.absolute))
            operator.relative = max(operator.relative, _number(difference.relative))
            if difference.ulp is not None:
                operator.ulp = max(operator.ulp or 0.0, _number(difference.ulp))


def operators(sources: Sources, folder: Path) -> Gathering:
    """Everything in `sources`, by operator. What does not have the form of its file is named in `sources.broken`."""
    gathering = Gathering(folder)

    def take(one: Callable[[], None]) -> None:
        try:
            one()
        except MALFORMED as error:
            sources.broken.append(f"an entry is not as the tools write it: {type(error).__name__}: {error}")

    for entry in sources.timings:
        take(lambda entry=entry: gathering.timing(entry))  # type: ignore[misc]
    for row in sources.time_rows:
        take(lambda row=row: gathering.time_row(row))  # type: ignore[misc]
    take(lambda: gathering.compared_rows(sources.compared_rows))
    timed = bool(sources.timings or sources.time_rows)
    for record in sources.records:
        take(lambda record=record: gathering.record(record, with_times=not timed))  # type: ignore[misc]
    for capture in sources.captures:
        take(lambda capture=capture: gathering.capture(capture))  # type: ignore[misc]
    return gathering


def _number(value: Any) -> float:
    found = float(value) if value not in (None, "") else 0.0
    return math.inf if math.isnan(found) else found


def as_json(gathering: Gathering, sources: Sources) -> str:
    """The operators for programs; milliseconds, bytes, and per second."""
    rows = [_facts(operator) for operator in in_order(gathering)]
    document = {"operators": rows, "faults": list(gathering.faults), "broken": sources.broken}
    return json.dumps(document, indent=1) + "\n"


def in_order(gathering: Gathering) -> list[Operator]:
    """Those that took longest first, then those that were called most."""
    return sorted(gathering.found.values(), key=lambda operator: (-operator.total, -operator.calls, operator.name))


def _facts(operator: Operator) -> dict[str, Any]:
    return {
        "operator": operator.name,
        "functions": sorted(name for name in operator.functions if name and name != operator.name),
        "calls": operator.calls,
        "phases": dict(sorted(operator.phases.items())),
        "milliseconds": {
            "total": operator.total,
            "p50": operator.quantile(0.5),
            "p95": operator.quantile(0.95),
            "p99": operator.quantile(0.99),
        },
        "bytes": operator.bytes,
        "flop": operator.flop,
        "bytes_per_second": operator.rate(operator.bytes),
        "flop_per_second": operator.rate(operator.flop),
        "compared": operator.results,
        "wrong": operator.wrong,
        "worst": {
            "absolute": _finite(operator.absolute),
            "relative": _finite(operator.relative),
            "ulp": _finite(operator.ulp),
        },
        "fault": operator.fault,
        "fallbacks": operator.fallbacks,
        "left": dict(sorted(operator.left.items())),
        "overflows": operator.overflows,
        "forms": [
            {
                "given": form.given,
                "calls": form.calls,
                "total": form.total,
                "p50": quantile(form.milliseconds, 0.5),
                "captures": form.captures,
            }
            for form in operator.forms.values()
        ],
    }


def _finite(value: float | None) -> float | str | None:
    return str(value) if value is not None and not math.isfinite(value) else value

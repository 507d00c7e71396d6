"""The report of a run: outcomes, the words of their cases, the exit code, and the JSON file."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from diopi_conformance.cases.plan import Case, CasePlan
from diopi_conformance.cases.variants import Variant
from diopi_conformance.outcome import Outcome, Verdict
from diopigen.atomic import write_text
from diopigen.boundary import FINDINGS
from diopigen.programs import INTERRUPTED
from diopigen.records.codec import typed
from diopigen.records.plan import number

REPORT_VERSION = 2

BAD = (Verdict.FAIL, Verdict.CRASH, Verdict.TIMEOUT, Verdict.LEAK, Verdict.UNSOUND)
LACKING = (Verdict.NOT_IMPLEMENTED, Verdict.SKIPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """What a case chose, in words; empty where it takes the usual or where nobody knows."""

    family: str = ""  # e.g. "pooling": the schema file of the operator
    elements: str = ""  # e.g. "f32-i64"
    layout: str = ""
    view: str = ""
    fill: str = ""
    change: str = ""
    models: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """How the call differs from the plainest one, e.g. ("nhwc", "strided")."""
        view = "" if self.view == "contiguous" else self.view
        return tuple(word for word in (self.layout, view, self.fill, self.change) if word)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The outcomes of a run; `planned` counts cases that did not get their turn too."""

    vendor: str
    planned: int
    outcomes: tuple[Outcome, ...]
    axes: Mapping[str, Axes] = field(default_factory=dict)  # by id of the case
    strict: bool = False
    seconds: float = 0.0
    variant: Variant = field(default_factory=Variant)
    leaks: tuple[str, ...] = ()  # what a sanitizer said of the memory of a worker, for each that leaked
    interrupted: bool = False  # by Ctrl-C
    outdated: tuple[str, ...] = ()  # what of the vendor's known failures passes now, in sentences

    def axes_of(self, outcome: Outcome) -> Axes:
        """The words of the outcome's case."""
        return self.axes.get(outcome.id, Axes())

    def is_bad(self, outcome: Outcome) -> bool:
        """Whether it fails the run: with `strict`, also what the library lacks; never what the vendor expects."""
        verdicts = (*BAD, Verdict.NOT_IMPLEMENTED) if self.strict else BAD
        return outcome.verdict in verdicts and not outcome.known

    def bad(self) -> tuple[Outcome, ...]:
        """What fails the run."""
        return tuple(o for o in self.outcomes if self.is_bad(o))

    def known(self) -> tuple[Outcome, ...]:
        """What the vendor expects to be bad, and is."""
        return tuple(o for o in self.outcomes if o.known and o.verdict is not Verdict.PASS)

    def counts(self) -> Counter[str]:
        return Counter(o.verdict.value for o in self.outcomes)

    @property
    def trivial(self) -> int:
        """How many cases passed that a library passes too which does nothing."""
        return sum(o.trivial and o.verdict is Verdict.PASS for o in self.outcomes)

    def faults(self) -> tuple[str, ...]:
        """What fails the run beside cases that are bad, in sentences. Nothing passing is bad: it proves nothing."""
        found = []
        if len(self.outcomes) < self.planned:
            found.append(f"{self.planned - len(self.outcomes)} of {self.planned} planned cases did not run")
        if not any(o.verdict is Verdict.PASS for o in self.outcomes):
            found.append("no case passed")
        if self.leaks:
            found.append(f"leaks in {len(self.leaks)} of the workers")
        found.extend(self.outdated)
        return tuple(found)

    @property
    def exit_code(self) -> int:
        """0 where nothing is bad and nothing else is wrong with the run."""
        if self.interrupted:
            return INTERRUPTED
        return FINDINGS if self.bad() or self.faults() else 0

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "version": REPORT_VERSION,
            "vendor": self.vendor,
            "planned": self.planned,
            "strict": self.strict,
            "seconds": round(self.seconds, 3),
            "variant": self.variant.document(),
            "counts": dict(sorted(self.counts().items())),
            "trivial": self.trivial,
            "known": len(self.known()),
            "leaks": list(self.leaks),
            "outdated": list(self.outdated),
            "outcomes": [self._entry(o) for o in sorted(self.outcomes, key=lambda o: o.id)],
        }

    def _entry(self, outcome: Outcome) -> dict[str, Any]:
        figures = {"error": _figure(outcome.error), "ulp": _figure(outcome.ulp)}
        return {**outcome.document(), **figures, **asdict(self.axes_of(outcome))}


def _figure(value: float | None) -> Any:
    """JSON has no infinity: it stands there as in a plan, {"float": "inf"}."""
    return value if value is None or math.isfinite(value) else {"float": str(value)}


def axes_of(plan: CasePlan, cases: Iterable[Case]) -> dict[str, Axes]:
    """The words of each case, by its id."""
    return {
        case.id: Axes(
            family=plan.functions[case.function].topic,
            elements=case.elements,
            layout=case.layout,
            view=case.view,
            fill=case.fill,
            change=case.change,
            models=case.models,
        )
        for case in cases
    }


def write_report(report: Report, path: Path) -> None:
    """The whole report as JSON, one outcome a line."""
    document = report.document()
    outcomes = document.pop("outcomes")
    head = json.dumps(document, indent=1)[:-2]
    lines = ",\n  ".join(json.dumps(o) for o in outcomes)
    write_text(path, f'{head},\n "outcomes": [\n  {lines}\n ]\n}}\n')


def read_report(path: Path) -> Report:
    """Raises OSError where there is none, ValueError where it is no report."""
    document = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(document, dict) or document.get("version") != REPORT_VERSION:
        raise ValueError(f"{path} is no report of this version; run the cases again")
    entries = [{**entry, **{name: number(entry[name]) for name in ("error", "ulp")}} for entry in document["outcomes"]]
    return typed(Report, {**document, "outcomes": entries, "axes": {entry["id"]: entry for entry in entries}})

"""What a run found: counts, a table by op, each failure with its id, a JSON file, and the exit code."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from diopi_conformance.outcome import Outcome, Verdict

REPORT_VERSION = 1

_BAD = (Verdict.FAIL, Verdict.CRASH, Verdict.TIMEOUT, Verdict.UNSOUND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The outcomes of a run; `planned` counts cases that did not get their turn too."""

    vendor: str
    planned: int
    outcomes: tuple[Outcome, ...]
    strict: bool = False
    seconds: float = 0.0
    leaks: tuple[str, ...] = ()  # what a sanitizer said of the memory of a worker, for each that leaked

    def bad(self) -> tuple[Outcome, ...]:
        """What fails the run: with `strict`, also what the library lacks."""
        verdicts = (*_BAD, Verdict.NOT_IMPLEMENTED) if self.strict else _BAD
        return tuple(o for o in self.outcomes if o.verdict in verdicts)

    def counts(self) -> Counter[str]:
        return Counter(o.verdict.value for o in self.outcomes)

    @property
    def exit_code(self) -> int:
        """0 where everything planned has run and nothing is bad or leaks. Nothing passing is bad: it proves nothing."""
        passed = any(o.verdict is Verdict.PASS for o in self.outcomes)
        return 0 if passed and not self.bad() and not self.leaks and len(self.outcomes) == self.planned else 1

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "version": REPORT_VERSION,
            "vendor": self.vendor,
            "planned": self.planned,
            "strict": self.strict,
            "seconds": round(self.seconds, 3),
            "counts": dict(sorted(self.counts().items())),
            "trivial": sum(o.trivial and o.verdict is Verdict.PASS for o in self.outcomes),
            "leaks": list(self.leaks),
            "outcomes": [o.document() for o in sorted(self.outcomes, key=lambda o: o.id)],
        }


def write_report(report: Report, path: Path) -> None:
    """The whole report as JSON, one outcome a line."""
    document = report.document()
    outcomes = document.pop("outcomes")
    head = json.dumps(document, indent=1)[:-2]
    lines = ",\n  ".join(json.dumps(o) for o in outcomes)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{head},\n "outcomes": [\n  {lines}\n ]\n}}\n', encoding="utf-8")


def read_report(path: Path) -> Report:
    """Raises OSError where there is none, ValueError where it is no report."""
    document = json.loads(path.read_text(encoding="utf-8"))
    if document.get("version") != REPORT_VERSION:
        raise ValueError(f"{path} is no report of this version")
    return Report(
        vendor=document["vendor"],
        planned=document["planned"],
        strict=document["strict"],
        seconds=document["seconds"],
        leaks=tuple(document.get("leaks", ())),
        outcomes=tuple(
            Outcome(**{**o, "verdict": Verdict(o["verdict"]), "index": tuple(o["index"])}) for o in document["outcomes"]
        ),
    )


def show(report: Report, console: Console, limit: int = 40) -> None:
    """The table, the first `limit` failures, and one line of counts."""
    if report.outcomes:
        console.print(_table(report.outcomes))
    bad = report.bad()
    for outcome in bad[:limit]:
        line = f"[red]{outcome.verdict.value}[/red] {escape(outcome.id)}: {escape(_reason(outcome))}"
        console.print(line, soft_wrap=True, highlight=False)
    if len(bad) > limit:
        console.print(f"... and {len(bad) - limit} more; the JSON report has them all")
    for leak in report.leaks:
        console.print(escape(leak), soft_wrap=True, highlight=False)
    console.print(summary(report))


def _reason(outcome: Outcome) -> str:
    if outcome.error is None:
        return outcome.message
    return f"{outcome.message}, max error {outcome.error:.3g}"


def summary(report: Report) -> str:
    """ex) "812 of 815 passed (12 of them trivial), 3 fail; 4.1 s"."""
    counts = report.counts()
    trivial = sum(o.trivial and o.verdict is Verdict.PASS for o in report.outcomes)
    parts = [f"{counts[Verdict.PASS.value]} of {report.planned} passed ({trivial} of them trivial)"]
    parts += [f"{counts[v.value]} {v.value}" for v in Verdict if v is not Verdict.PASS and counts[v.value]]
    if report.leaks:
        parts.append(f"leaks in {len(report.leaks)} of the workers")
    if len(report.outcomes) < report.planned:
        parts.append(f"{report.planned - len(report.outcomes)} did not run")
    return f"{', '.join(parts)}; {report.seconds:.1f} s"


def _table(outcomes: Sequence[Outcome]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("op", "cases", "pass", "fail", "lacks", "max error"):
        table.add_column(column, justify="left" if column == "op" else "right")
    for op in dict.fromkeys(o.op for o in outcomes):
        table.add_row(*_row(op, [o for o in outcomes if o.op == op]))
    return table


def _row(op: str, outcomes: Iterable[Outcome]) -> tuple[str, ...]:
    found = list(outcomes)
    passed = [o for o in found if o.verdict is Verdict.PASS]
    lacks = sum(o.verdict is Verdict.NOT_IMPLEMENTED for o in found)
    bad = sum(o.verdict in _BAD for o in found)
    worst = max((o.error for o in passed if o.error is not None), default=0.0)
    return (
        op,
        str(len(found)),
        str(len(passed)),
        f"[red]{bad}[/red]" if bad else "0",
        str(lacks) if lacks else "",
        f"{worst:.1e}" if worst else "0",
    )

"""A report as one HTML page that needs nothing else: no network, no other file, no server."""

from dataclasses import dataclass
from pathlib import Path

from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.report.differences import Differences
from diopi_conformance.report.groups import Group, failures, tally
from diopi_conformance.report.histogram import LABELS, Histogram, histogram
from diopi_conformance.report.model import Report
from diopi_conformance.report.page_data import page_data
from diopi_conformance.report.terminal import summary
from diopi_conformance.report.wording import reason, repro_command, ulp_text
from diopigen.page import kit

_GROUPS = 300  # groups of failures that the page spells out; the table of cases has all
_CASES = 12  # cases that a group names
_CHANGES = 200  # changed cases of one kind
_EXTREMES = 25  # worst and slowest cases


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureView:
    name: str  # e.g. "passed"
    value: str  # e.g. "31840"
    share: str  # e.g. "99.5 %", or ""
    slug: str  # the color


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureView:
    verdict: str
    function: str
    cases: str  # e.g. "12 cases of f16, f32"
    ways: str  # e.g. "strided, zero"
    reason: str
    ids: tuple[str, ...]
    more: int  # cases that are not named
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtremeView:
    id: str
    function: str
    error: str
    ulp: str
    milliseconds: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionView:
    name: str  # e.g. "newly failing"
    count: int
    changes: tuple[tuple[str, str], ...]  # id, what changed
    more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PageView:
    vendor: str
    good: bool
    summary: str
    faults: tuple[str, ...]
    leaks: tuple[str, ...]
    figures: tuple[FigureView, ...]
    failures: tuple[FailureView, ...]
    more_failures: int  # groups that are not spelled out
    histogram: Histogram
    labels: int  # units left of the histogram's bars
    inexact: tuple[ExtremeView, ...]
    slow: tuple[ExtremeView, ...]
    sections: tuple[SectionView, ...] | None  # None: compared with no other report
    data: str  # JSON that is safe in a script element
    site: str  # the address of the documentation; may be empty


def page(report: Report, against: Differences | None = None, site: str = "") -> str:
    """The text of the page, which links `site`; with `against`, what changed is a part of it."""
    environment = kit.environment(Path(__file__).parent / "page_files")
    return environment.get_template("page.html.j2").render(view=view(report, against, site))


def view(report: Report, against: Differences | None, site: str) -> PageView:
    """What the page lays out."""
    groups = failures(report)
    passed = [o for o in report.outcomes if o.verdict is Verdict.PASS]
    slowest = sorted(report.outcomes, key=lambda o: (-o.seconds, o.id))[:_EXTREMES]
    worst = sorted((o for o in passed if o.ulp), key=lambda o: (-(o.ulp or 0.0), o.id))[:_EXTREMES]
    return PageView(
        vendor=report.vendor,
        good=report.exit_code == 0,
        summary=summary(report),
        faults=report.faults(),
        leaks=report.leaks,
        figures=_figures(report),
        failures=tuple(_failure(report, group) for group in groups[:_GROUPS]),
        more_failures=max(0, len(groups) - _GROUPS),
        histogram=histogram(o.ulp for o in passed if o.ulp is not None),
        labels=LABELS,
        inexact=tuple(_extreme(o) for o in worst),
        slow=tuple(_extreme(o) for o in slowest),
        sections=None if against is None else _sections(against),
        data=page_data(report),
        site=site,
    )


def _figures(report: Report) -> tuple[FigureView, ...]:
    total = tally("all", report.outcomes)
    bad = len(report.bad())
    counts = (
        ("passed", total.passed, "pass"),
        ("bad", bad, "bad"),
        ("lacking", total.lacking - (bad - total.bad), "lacks"),  # with `strict` what is lacking is bad
        ("known to fail", total.known, "known"),
        ("did not run", report.planned - len(report.outcomes), "bad"),
    )
    shown = (entry for entry in counts if entry[1] or entry[0] in ("passed", "bad"))
    figures = tuple(
        FigureView(name=name, value=str(count), share=f"{100 * count / max(1, report.planned):.1f} %", slug=slug)
        for name, count, slug in shown
    )
    return (
        FigureView(name="planned cases", value=str(report.planned), share="", slug=""),
        *figures,
        FigureView(name="functions", value=str(total.functions), share="", slug=""),
        FigureView(name="seconds", value=f"{report.seconds:.1f}", share="", slug=""),
    )


def _failure(report: Report, group: Group) -> FailureView:
    count = len(group.outcomes)
    cases = "1 case" if count == 1 else f"{count} cases"
    return FailureView(
        verdict=group.first.verdict.value,
        function=group.first.function,
        cases=f"{cases} of {', '.join(group.elements)}" if group.elements else cases,
        ways=", ".join(group.words),
        reason=reason(group.first),
        ids=tuple(o.id for o in group.outcomes[:_CASES]),
        more=max(0, count - _CASES),
        command=repro_command(group.first.id, report),
    )


def _extreme(outcome: Outcome) -> ExtremeView:
    return ExtremeView(
        id=outcome.id,
        function=outcome.function,
        error="" if outcome.error is None else f"{outcome.error:.3g}",
        ulp="" if outcome.ulp is None else ulp_text(outcome.ulp),
        milliseconds=f"{1000 * outcome.seconds:.2f}",
    )


def _sections(against: Differences) -> tuple[SectionView, ...]:
    return tuple(
        SectionView(
            name=name,
            count=len(changes),
            changes=tuple((change.id, change.text) for change in changes[:_CHANGES]),
            more=max(0, len(changes) - _CHANGES),
        )
        for name, changes in against.sections()
    )

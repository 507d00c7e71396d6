"""A report for the terminal: a table of families, failures by function and cause, one line of counts."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from diopi_conformance.outcome import Verdict
from diopi_conformance.report.differences import Differences
from diopi_conformance.report.groups import Group, Tally, failures, families, tally
from diopi_conformance.report.model import Report
from diopi_conformance.report.wording import reason, ulp_text

_WORDS = 6  # element types or views that a line names


def show(report: Report, console: Console, limit: int = 40) -> None:
    """The table, the first `limit` groups of failures, and one line of counts."""
    if report.outcomes:
        console.print(_table(report))
    groups = failures(report)
    for group in groups[:limit]:
        console.print(_told(group), soft_wrap=True, highlight=False)
    if len(groups) > limit:
        rest = sum(len(group.outcomes) for group in groups[limit:])
        console.print(f"... and {rest} more in {len(groups) - limit} groups; the JSON report has them all")
    for sentence in report.outdated:
        console.print(escape(sentence), soft_wrap=True, highlight=False)
    for leak in report.leaks:
        console.print(escape(leak), soft_wrap=True, highlight=False)
    console.print(summary(report), soft_wrap=True, highlight=False)


def show_differences(found: Differences, console: Console, limit: int = 20) -> None:
    """The first `limit` cases of each kind of difference."""
    for name, changes in found.sections():
        console.print(f"{name}: {len(changes)}", highlight=False)
        for change in changes[:limit]:
            console.print(f"  {escape(change.id)}: {escape(change.text)}", soft_wrap=True, highlight=False)
        if len(changes) > limit:
            console.print(f"  ... and {len(changes) - limit} more")
    if not found.sections():
        console.print("nothing changed")


def summary(report: Report) -> str:
    """e.g. "812 of 815 passed (12 of them trivial), 3 fail; 4.1 s"."""
    unknown = Report(vendor=report.vendor, planned=0, outcomes=tuple(o for o in report.outcomes if not o.known))
    counts = unknown.counts()
    parts = [f"{report.counts()[Verdict.PASS.value]} of {report.planned} passed ({report.trivial} of them trivial)"]
    parts += [f"{counts[v.value]} {v.value}" for v in Verdict if v is not Verdict.PASS and counts[v.value]]
    if known := report.known():
        parts.append(f"{len(known)} known to fail")
    if report.leaks:
        parts.append(f"leaks in {len(report.leaks)} of the workers")
    if report.outdated:
        parts.append(f"{len(report.outdated)} known failures to remove")
    if len(report.outcomes) < report.planned:
        parts.append(f"{report.planned - len(report.outcomes)} did not run")
    return f"{', '.join(parts)}; {report.seconds:.1f} s"


def _told(group: Group) -> str:
    first = group.first
    told = f"[red]{first.verdict.value}[/red] {escape(first.function)}"
    if len(group.outcomes) > 1:
        told += f" in {len(group.outcomes)} cases"
        if group.elements:
            told += f" of {_listed(group.elements)}"
        if group.words:
            told += f" ({_listed(group.words)})"
        told += ", the first"
    return f"{told} {escape(first.id)}: {escape(reason(first))}"


def _listed(words: tuple[str, ...]) -> str:
    more = len(words) - _WORDS
    return ", ".join(words[:_WORDS]) + (f" and {more} more" if more > 0 else "")


def _table(report: Report) -> Table:
    found = families(report)
    known = any(entry.known for entry in found)
    table = Table(box=None, pad_edge=False)
    columns = ("functions", "cases", "pass", "bad", "lacks", *(("known",) if known else ()), "max error", "max ULP")
    table.add_column("family", justify="left")
    for column in columns:
        table.add_column(column, justify="right")
    for entry in found:
        table.add_row(*_row(entry, known))
    if len(found) > 1:
        table.add_section()
        table.add_row(*_row(tally("all", report.outcomes), known))
    return table


def _row(entry: Tally, known: bool) -> tuple[str, ...]:
    return (
        entry.name or "-",
        str(entry.functions),
        str(entry.cases),
        str(entry.passed),
        f"[red]{entry.bad}[/red]" if entry.bad else "0",
        str(entry.lacking) if entry.lacking else "",
        *((str(entry.known) if entry.known else "",) if known else ()),
        "" if entry.error is None else f"{entry.error:.1e}" if entry.error else "0",
        "" if entry.ulp is None else ulp_text(entry.ulp),
    )

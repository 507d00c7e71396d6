"""A report as CSV: one line for each case, for spreadsheets and scripts."""

import csv
import io

from diopi_conformance.outcome import Outcome
from diopi_conformance.report.model import Report

COLUMNS = (
    "id",
    "function",
    "op",
    "family",
    "elements",
    "layout",
    "view",
    "fill",
    "change",
    "models",
    "verdict",
    "known",
    "trivial",
    "output",
    "index",
    "error",
    "ulp",
    "memory",
    "seconds",
    "message",
)


def table(report: Report) -> str:
    """The document; lists are words with spaces between them, what is not known is empty."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for outcome in sorted(report.outcomes, key=lambda o: o.id):
        writer.writerow(_line(report, outcome))
    return stream.getvalue()


def _line(report: Report, outcome: Outcome) -> list[str]:
    axes = report.axes_of(outcome)
    return [
        outcome.id,
        outcome.function,
        outcome.op,
        axes.family,
        axes.elements,
        axes.layout,
        axes.view,
        axes.fill,
        axes.change,
        " ".join(axes.models),
        outcome.verdict.value,
        outcome.known,
        "yes" if outcome.trivial else "",
        outcome.output,
        " ".join(map(str, outcome.index)),
        "" if outcome.error is None else repr(outcome.error),
        "" if outcome.ulp is None else repr(outcome.ulp),
        str(outcome.memory),
        repr(outcome.seconds),
        outcome.message,
    ]

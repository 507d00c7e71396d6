"""The cases of a report as the page's script reads them: columns, with words that repeat kept once."""

import json
import math
from typing import Any

from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.report.model import LACKING, Report

_KINDS = ("pass", "bad", "lacks", "known")
_VERDICTS = tuple(verdict.value for verdict in Verdict)


def page_data(report: Report) -> str:
    """JSON that is safe in a script element; the cases in the order of their ids."""
    outcomes = sorted(report.outcomes, key=lambda o: o.id)
    functions, elements, words, messages = _Words(), _Words(), _Words(), _Words()
    document = {
        "vendor": report.vendor,
        "options": list(report.variant.options),
        "id": [o.id for o in outcomes],
        "function": [functions.place((o.function, o.op, report.axes_of(o).family)) for o in outcomes],
        "elements": [elements.place(tuple(report.axes_of(o).elements.split("-"))) for o in outcomes],
        "words": [words.place(_ways(report, o)) for o in outcomes],
        "kind": [_KINDS.index(kind(report, o)) for o in outcomes],
        "verdict": [_VERDICTS.index(o.verdict.value) for o in outcomes],
        "error": [_short(o.error) for o in outcomes],
        "ulp": [_short(o.ulp) for o in outcomes],
        "ms": [_short(1000 * o.seconds) for o in outcomes],
        "message": [messages.place(_message(o)) for o in outcomes],
        "tables": {
            "function": functions.entries,
            "elements": elements.entries,
            "words": words.entries,
            "kind": _KINDS,
            "verdict": _VERDICTS,
            "message": messages.entries,
        },
    }
    return _for_script(json.dumps(document, separators=(",", ":"), ensure_ascii=False))


def kind(report: Report, outcome: Outcome) -> str:
    """What the page colors, one of _KINDS."""
    if outcome.verdict is Verdict.PASS:
        return "pass"
    if outcome.known:
        return "known"
    return "lacks" if outcome.verdict in LACKING and not report.is_bad(outcome) else "bad"


class _Words:
    """Numbers for values that repeat."""

    def __init__(self) -> None:
        self._places: dict[Any, int] = {}

    def place(self, value: Any) -> int:
        return self._places.setdefault(value, len(self._places))

    @property
    def entries(self) -> list[Any]:
        return list(self._places)


def _ways(report: Report, outcome: Outcome) -> tuple[str, ...]:
    axes = report.axes_of(outcome)
    return (*axes.words, *(("model",) if axes.models else ()))


def _message(outcome: Outcome) -> str:
    return f"{outcome.known}: {outcome.message}" if outcome.known else outcome.message


def _short(value: float | None) -> Any:
    """Three digits are enough to look at; infinity, which JSON has not, is a word."""
    if value is None:
        return None
    return float(f"{value:.3g}") if math.isfinite(value) else str(value)


def _for_script(text: str) -> str:
    """Nothing in it ends the element or opens a comment: `<`, `>` and `&` only occur inside of strings."""
    return text.translate({ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})

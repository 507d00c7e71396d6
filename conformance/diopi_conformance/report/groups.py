"""Outcomes put together: by family, and failures of one function by what they have in common."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.report.model import LACKING, Report

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|\b(?:nan|inf)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Some cases, counted."""

    name: str  # e.g. "pooling"
    functions: int
    cases: int
    passed: int
    bad: int
    lacking: int  # not implemented, or values that no dtype of the vendor holds
    known: int
    error: float | None  # the largest absolute error of what passed
    ulp: float | None  # the largest in units in the last place


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Failures of one function that look alike; the first is their example."""

    outcomes: tuple[Outcome, ...]
    elements: tuple[str, ...]  # e.g. ("f16", "f32")
    words: tuple[str, ...]  # e.g. ("strided", "zero")

    @property
    def first(self) -> Outcome:
        return self.outcomes[0]


def tally(name: str, outcomes: Iterable[Outcome]) -> Tally:
    """The counts of `outcomes`."""
    found = tuple(outcomes)
    passed = [o for o in found if o.verdict is Verdict.PASS]
    lacking = [o for o in found if o.verdict in LACKING and not o.known]
    known = [o for o in found if o.known and o.verdict is not Verdict.PASS]
    return Tally(
        name=name,
        functions=len({o.function for o in found}),
        cases=len(found),
        passed=len(passed),
        bad=len(found) - len(passed) - len(lacking) - len(known),
        lacking=len(lacking),
        known=len(known),
        error=max((o.error for o in passed if o.error is not None), default=None),
        ulp=max((o.ulp for o in passed if o.ulp is not None), default=None),
    )


def families(report: Report) -> tuple[Tally, ...]:
    """One tally for each family, in the order of their names."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in report.outcomes:
        groups.setdefault(report.axes_of(outcome).family, []).append(outcome)
    return tuple(tally(name, groups[name]) for name in sorted(groups))


def failures(report: Report) -> tuple[Group, ...]:
    """What fails the run: one group for each function and cause, in the order in which they were met."""
    groups: dict[tuple[str, ...], list[Outcome]] = {}
    for outcome in report.bad():
        groups.setdefault((outcome.function, *cause(outcome)), []).append(outcome)
    return tuple(_group(report, found) for found in groups.values())


def cause(outcome: Outcome) -> tuple[str, ...]:
    """What failures must share to be taken for one: wrong values of an output, else the message but its numbers."""
    what = "values" if outcome.error is not None else _NUMBER.sub("#", outcome.message)
    return outcome.verdict.value, outcome.output, what


def _group(report: Report, outcomes: list[Outcome]) -> Group:
    axes = [report.axes_of(o) for o in outcomes]
    return Group(
        outcomes=tuple(outcomes),
        elements=tuple(dict.fromkeys(a.elements for a in axes if a.elements)),
        words=tuple(dict.fromkeys(word for a in axes for word in a.words)),
    )

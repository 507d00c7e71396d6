"""Finds the smallest case that still fails in the same way, by trying simpler ones."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from diopi_conformance.cases.plan import Case, CasePlan
from diopi_conformance.outcome import Outcome
from diopi_conformance.report.groups import cause
from diopi_conformance.repro.shrink_steps import simpler

Attempt = Callable[[Case], Outcome]
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long to look."""

    attempts: int = 400
    seconds: float = 60.0


@dataclass(slots=True, kw_only=True)
class Shrinker:
    """Looks for a case that fails as the first one does; `tell` hears of every step that was made."""

    plan: CasePlan
    attempt: Attempt
    tell: Tell
    limits: Limits = field(default_factory=Limits)
    tried: set[str] = field(default_factory=set)

    def smallest(self, case: Case, outcome: Outcome) -> tuple[Case, Outcome]:
        """The smallest case that was found and what became of it; the given ones where nothing simpler fails alike."""
        end = time.monotonic() + self.limits.seconds
        wanted = kind(outcome)
        self.tried = {_key(case)}
        while (step := self._step(case, wanted, end)) is not None:
            case, outcome = step
            self.tell(f"to {described(case)}")
        return case, outcome

    def _step(self, case: Case, wanted: tuple[str, ...], end: float) -> tuple[Case, Outcome] | None:
        for candidate in self._fresh(case):
            if len(self.tried) > self.limits.attempts + 1 or time.monotonic() > end:
                self.tell("the limit is reached; there may be a smaller one")
                return None
            outcome = self.attempt(candidate)
            if kind(outcome) == wanted:
                return candidate, outcome
        return None

    def _fresh(self, case: Case) -> Iterator[Case]:
        for candidate in simpler(self.plan, case):
            key = _key(candidate)
            if key not in self.tried:
                self.tried.add(key)
                yield candidate


def kind(outcome: Outcome) -> tuple[str, ...]:
    """What two failures must share: verdict, the output that is wrong, and the words of the message."""
    verdict, output, message = cause(replace(outcome, output=""))
    return verdict, outcome.output.partition("[")[0] or output, message


def described(case: Case) -> str:
    """e.g. "f32 strided, input 3x4, dim 1"."""
    view = "" if case.view == "contiguous" else case.view
    ways = (*dict.fromkeys(case.dtypes.values()), case.layout, view, case.fill)
    values = (f"{name} {_value(value)}" for name, value in case.values.items() if value is not None)
    return ", ".join((" ".join(way for way in ways if way), *values))


def _value(value: Any) -> str:
    if isinstance(value, list) and value and all(isinstance(n, int) and not isinstance(n, bool) for n in value):
        return "x".join(map(str, value))
    return json.dumps(value)


def _key(case: Case) -> str:
    return json.dumps(
        (case.values, case.dtypes, case.forward, case.layout, case.view, case.fill, case.change), sort_keys=True
    )

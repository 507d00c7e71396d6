"""What changed from one report to the next, case by case."""

from dataclasses import dataclass, fields
from typing import Any

from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.report.groups import cause
from diopi_conformance.report.model import LACKING, Report
from diopi_conformance.report.wording import ulp_text

_NOTICED = 1.25  # an error that grows or shrinks by less is no news: the order of sums may differ from run to run


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One case in both reports; None where a report has it not."""

    before: Outcome | None
    after: Outcome | None

    @property
    def id(self) -> str:
        found = self.after or self.before
        assert found is not None
        return found.id

    @property
    def text(self) -> str:
        """e.g. "pass -> fail: out[3] is 1.0, expected 0.0"."""
        if self.before is None or self.after is None:
            return "".join(_state(outcome) for outcome in (self.before, self.after) if outcome is not None)
        if self.before.verdict is self.after.verdict is Verdict.PASS:
            return f"max error {_error(self.before)} -> {_error(self.after)}"
        if self.after.verdict is self.before.verdict and self.after.error is not None:
            return f"{self.after.message}, max error {_error(self.before)} -> {_error(self.after)}"
        told = f"{_state(self.before)} -> {_state(self.after)}"
        return f"{told}: {self.after.message}" if self.after.message else told


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """The cases that are not as they were; each is in one field, in the order of ids."""

    newly_failing: tuple[Change, ...]
    newly_passing: tuple[Change, ...]
    newly_lacking: tuple[Change, ...]  # the library cannot do them any more
    changed: tuple[Change, ...]  # bad for another reason, or right with another error
    gone: tuple[Change, ...]
    new: tuple[Change, ...]

    def sections(self) -> tuple[tuple[str, tuple[Change, ...]], ...]:
        """The fields that hold something, e.g. ("newly failing", ...)."""
        named = ((field.name.replace("_", " "), getattr(self, field.name)) for field in fields(self))
        return tuple((name, changes) for name, changes in named if changes)

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            field.name: [{"id": change.id, "change": change.text} for change in getattr(self, field.name)]
            for field in fields(self)
        }


def differences(new: Report, old: Report) -> Differences:
    """What `new` says otherwise than `old`."""
    before = {outcome.id: outcome for outcome in old.outcomes}
    after = {outcome.id: outcome for outcome in new.outcomes}
    found: dict[str, list[Change]] = {field.name: [] for field in fields(Differences)}
    for case in sorted(before.keys() | after.keys()):
        change = Change(before=before.get(case), after=after.get(case))
        if kind := _kind(change, new, old):
            found[kind].append(change)
    return Differences(**{name: tuple(changes) for name, changes in found.items()})


def _kind(change: Change, new: Report, old: Report) -> str | None:
    """The field of Differences that the change belongs to; None where there is none."""
    before, after = change.before, change.after
    if before is None:
        return "new"
    if after is None:
        return "gone"
    if new.is_bad(after) and not old.is_bad(before):
        return "newly_failing"
    if after.verdict is Verdict.PASS and before.verdict is not Verdict.PASS:
        return "newly_passing"
    if after.verdict in LACKING and before.verdict not in LACKING:
        return "newly_lacking"
    if after.verdict is Verdict.PASS:
        return "changed" if _differ(before.error, after.error) or _differ(before.ulp, after.ulp) else None
    return "changed" if cause(before) != cause(after) or _differ(before.error, after.error) else None


def _differ(before: float | None, after: float | None) -> bool:
    if before is None or after is None:
        return before is not after
    return max(before, after) > _NOTICED * min(before, after)


def _state(outcome: Outcome) -> str:
    return f"{outcome.verdict.value} (known)" if outcome.known else outcome.verdict.value


def _error(outcome: Outcome) -> str:
    parts = [] if outcome.error is None else [f"{outcome.error:.3g}"]
    parts += [] if outcome.ulp is None else [f"{ulp_text(outcome.ulp)} ULP"]
    return ", ".join(parts) or "none"

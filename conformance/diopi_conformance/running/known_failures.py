"""What a vendor knows to fail: `vendors/V/known_failures.yaml`, a list of cases with a reason and a day to look again.

- id: cumsum/f16/*          a case or a glob
  verdict: fail             optional: only this way to be bad
  reason: sums are kept in half precision
  expires: 2027-03-31
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from difflib import get_close_matches
from fnmatch import translate
from pathlib import Path
from typing import get_args

from diopi_conformance.cases.plan import Case
from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.running.yaml_places import Record, Word, YamlError, YamlPlace, records
from diopigen.records.known_failures import Bad, KnownFailure

_KEYS = tuple(KnownFailure.model_fields)
_REQUIRED = tuple(name for name, found in KnownFailure.model_fields.items() if found.is_required())
_VERDICTS: tuple[str, ...] = get_args(Bad)
_GLOB = re.compile(r"[*?[]")


class KnownError(Exception):
    """The file is wrong; the text has a line for each mistake, with its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One entry."""

    pattern: str  # e.g. "cumsum/f16/*"
    reason: str
    verdict: Verdict | None  # None: however it is bad
    cases: frozenset[str]  # ids that the pattern means
    place: YamlPlace

    def explains(self, outcome: Outcome) -> bool:
        """Whether this is the failure that the entry speaks of."""
        if outcome.id not in self.cases or outcome.verdict.value not in _VERDICTS:
            return False
        if self.verdict is None:
            return outcome.verdict is not Verdict.NOT_IMPLEMENTED
        return outcome.verdict is self.verdict


def read_known(path: Path, cases: Sequence[Case], today: date) -> tuple[Known, ...]:
    """The entries of a file; `cases` are all of the plan. No file is no entries. Raises KnownError."""
    try:
        found = records(path)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise KnownError(f"{path} cannot be read: {error.strerror}") from None
    except YamlError as error:
        raise KnownError(str(error)) from None
    ids = [case.id for case in cases]
    mistakes: list[str] = []
    entries = [_entry(record, ids, today, mistakes) for record in found]
    if mistakes:
        raise KnownError("\n".join(mistakes))
    return tuple(entry for entry in entries if entry is not None)


def explained(outcomes: Iterable[Outcome], known: Sequence[Known]) -> tuple[Outcome, ...]:
    """The outcomes, with the reason of the first entry that speaks of them."""
    return tuple(
        next((replace(outcome, known=entry.reason) for entry in known if entry.explains(outcome)), outcome)
        for outcome in outcomes
    )


def outdated(outcomes: Sequence[Outcome], known: Sequence[Known]) -> tuple[str, ...]:
    """A sentence for each entry all of whose cases ran and passed."""
    passed = {o.id for o in outcomes if o.verdict is Verdict.PASS}
    return tuple(
        f"{entry.place}: '{entry.pattern}' now passes in all its {len(entry.cases)} cases: remove the entry"
        for entry in known
        if entry.cases <= passed
    )


def _entry(record: Record, ids: Sequence[str], today: date, mistakes: list[str]) -> Known | None:
    before = len(mistakes)
    values = {key.text: value for key, value in record.entries}
    for key, _ in record.entries:
        if key.text not in _KEYS:
            hint = _hint(key.text, _KEYS) or f"; keys are {', '.join(_KEYS)}"
            mistakes.append(f"{key.place}: a known failure has no '{key.text}'{hint}")
    for name in _REQUIRED:
        if name not in values or not values[name].text.strip():
            place = values[name].place if name in values else record.place
            mistakes.append(f"{place}: the entry lacks its '{name}'{_WHY[name]}")
    if len(mistakes) > before:
        return None
    _expiry(values["expires"], today, mistakes)
    verdict = values.get("verdict")
    if verdict is not None and verdict.text not in _VERDICTS:
        hint = _hint(verdict.text, _VERDICTS) or f"; it is one of {', '.join(_VERDICTS)}"
        mistakes.append(f"{verdict.place}: '{verdict.text}' is no way to fail{hint}")
    cases = _meant(values["id"], ids, mistakes)
    if len(mistakes) > before:
        return None
    return Known(
        pattern=values["id"].text,
        reason=values["reason"].text,
        verdict=None if verdict is None else Verdict(verdict.text),
        cases=cases,
        place=record.place,
    )


_WHY = {
    "id": "; say which case, e.g. 'id: add/f32/0'",
    "reason": "; say why the vendor cannot fix it now",
    "expires": "; say when to look again, e.g. 'expires: 2027-03-31'",
}


def _expiry(word: Word, today: date, mistakes: list[str]) -> None:
    try:
        day = date.fromisoformat(word.text)
    except ValueError:
        mistakes.append(f"{word.place}: '{word.text}' is no date; write it like 2027-03-31")
        return
    if day < today:
        mistakes.append(f"{word.place}: the entry expired on {day}; fix what fails, or review it and set a later day")


def _meant(word: Word, ids: Sequence[str], mistakes: list[str]) -> frozenset[str]:
    matches = re.compile(translate(word.text)).match
    found = frozenset(name for name in ids if matches(name))
    if not found:
        hint = "" if _GLOB.search(word.text) else _hint(word.text, ids)
        mistakes.append(f"{word.place}: no case is called '{word.text}'{hint}")
    return found


def _hint(text: str, words: Sequence[str]) -> str:
    close = get_close_matches(text, words, n=1)
    return f"; did you mean '{close[0]}'?" if close else ""

"""What has become of cases so far, on disk while a run goes on: a line of JSON each, behind one that names the run."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from diopi_conformance.outcome import Outcome
from diopigen.atomic import append, is_special, write_text
from diopigen.malformed import MALFORMED

JOURNAL_VERSION = 1


class JournalError(Exception):
    """A run cannot be resumed; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What must be the same for two runs to be parts of one."""

    vendor: str
    plan: str  # its digest
    library: str  # the digest of the vendor's library
    variant: Mapping[str, int | bool]  # ex) {"seed": 0, "nhwc": False, "four_bytes": False}


_CHANGED = {
    "vendor": "it is of another vendor",
    "plan": "the plan has changed since",
    "library": "the library has changed since",
    "variant": "it was run with other options (--seed, --nhwc or --four-bytes)",
}


class Journal:
    """The journal of one run, open for writing; each change raises Unwritable where it cannot be written."""

    def __init__(self, path: Path, identity: Identity, earlier: Mapping[str, Outcome]) -> None:
        """Begins the journal anew, with the outcomes of the run that is resumed."""
        self._path = path
        documents = ({"version": JOURNAL_VERSION, **asdict(identity)}, *(o.document() for o in earlier.values()))
        write_text(path, "".join(map(_line, documents)))

    def write(self, outcome: Outcome) -> None:
        """One more outcome; it survives the end of this process."""
        append(self._path, _line(outcome.document()).encode())

    def close(self, complete: bool) -> None:
        """Nothing more comes; the journal of a complete run goes, since its report says the same."""
        if complete:
            self._path.unlink(missing_ok=True)


def _line(document: dict[str, Any]) -> str:
    return json.dumps(document) + "\n"


def journal_path(report: Path) -> Path:
    """Where the journal of the run lies whose report is, or will be, at `report`."""
    return (Path("conformance_results") / report.name if is_special(report) else report).with_suffix(".journal")


def resumed(path: Path, identity: Identity) -> dict[str, Outcome]:
    """The outcomes of the run that left this journal, by case.

    A last line that was torn off by the end of that run is left out. Raises JournalError where there is no such run, or
    one of which this one cannot be the rest.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        raise JournalError(f"there is nothing to resume: no run was broken off that left {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise JournalError(f"{path} cannot be read: {error}; run without --resume") from None
    try:
        head = json.loads(lines[0])
        found = [Outcome.of(json.loads(line)) for line in lines[1:-1]]
    except MALFORMED as error:
        raise JournalError(f"{path} is damaged: {error}; run without --resume") from None
    if not isinstance(head, dict) or head.get("version") != JOURNAL_VERSION:
        raise JournalError(f"{path} is no journal of this version; run without --resume")
    for name, value in asdict(identity).items():
        if head.get(name) != value:
            raise JournalError(f"the run that left {path} cannot go on: {_CHANGED[name]}; run without --resume")
    return {outcome.id: outcome for outcome in found}


def digest_of(path: Path) -> str:
    """The checksum of a file's content."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

"""What has become of cases so far, on disk while a run goes on: a line of JSON each, behind one that names the run.

Lines are signed: an outcome written by another user is not trusted.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from diopi_conformance.expected.expectations import FILES
from diopi_conformance.outcome import Outcome
from diopi_conformance.running.signing import Chain, user_key
from diopigen.atomic import append, is_special, write_text
from diopigen.records.codec import typed

JOURNAL_VERSION = 2


class JournalError(Exception):
    """A run cannot be resumed; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What must be the same for two runs to be parts of one."""

    vendor: str
    plan: str  # its digest
    suite: str  # the digest of the suite's own code
    library: str  # the digest of the vendor's library
    variant: Mapping[str, int | bool]  # e.g. {"seed": 0, "nhwc": False, "four_bytes": False}


_CHANGED = {
    "vendor": "it is of another vendor",
    "plan": "the plan has changed since",
    "suite": "the conformance suite has changed since",
    "library": "the library has changed since",
    "variant": "it was run with other options (--seed, --nhwc or --four-bytes)",
}


class Journal:
    """The journal of one run, open for writing; each change raises Unwritable where it cannot be written."""

    def __init__(self, path: Path, identity: Identity, earlier: Mapping[str, Outcome]) -> None:
        """Begins the journal anew, with the outcomes of the run that is resumed."""
        self._path = path
        self._chain = Chain(user_key())
        documents = ({"version": JOURNAL_VERSION, **asdict(identity)}, *(o.document() for o in earlier.values()))
        write_text(path, "".join(map(self._line, documents)))

    def write(self, outcome: Outcome) -> None:
        """One more outcome; it survives the end of this process."""
        append(self._path, self._line(outcome.document()).encode())

    def close(self, complete: bool) -> None:
        """Nothing more comes; the journal of a complete run goes, since its report says the same."""
        if complete:
            self._path.unlink(missing_ok=True)

    def _line(self, document: dict[str, Any]) -> str:
        return self._chain.signed(json.dumps(document).encode()).decode() + "\n"


def journal_path(report: Path) -> Path:
    """Where the journal of the run lies whose report is, or will be, at `report`."""
    return (Path("conformance_results") / report.name if is_special(report) else report).with_suffix(".journal")


def resumed(path: Path, identity: Identity) -> dict[str, Outcome]:
    """The outcomes of the run that left this journal, by case.

    A last line that was torn off by the end of that run is left out. Raises JournalError where there is no such run, or
    one of which this one cannot be the rest.
    """
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        raise JournalError(f"there is nothing to resume: no run was broken off that left {path}") from None
    except OSError as error:
        raise JournalError(f"{path} cannot be read: {error}; run without --resume") from None
    if not lines or lines[0].startswith(b"{"):
        raise JournalError(f"{path} is no journal of version {JOURNAL_VERSION}; run without --resume")
    head, *found = _documents(path, lines)
    if head.pop("version") != JOURNAL_VERSION:
        raise JournalError(f"{path} is no journal of version {JOURNAL_VERSION}; run without --resume")
    for name, value in asdict(identity).items():
        if head.get(name) != value:
            raise JournalError(f"the run that left {path} cannot go on: {_CHANGED[name]}; run without --resume")
    return {outcome.id: outcome for outcome in (typed(Outcome, document) for document in found)}


def _documents(path: Path, lines: Sequence[bytes]) -> Iterator[dict[str, Any]]:
    """What runs of this user have written. Raises JournalError at the first line that is something else."""
    chain = Chain(user_key())
    for number, line in enumerate(lines, 1):
        text = chain.text(line)
        if text is None:
            raise JournalError(f"{path}:{number}: no run of this user has written this line; run without --resume")
        yield json.loads(text)


@cache
def suite_digest() -> str:
    """The checksum of the suite's own code, and of references that the command line adds."""
    package = Path(__file__).parents[1]
    found = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        found.update(f"{path.relative_to(package)}:{digest_of(path)}\n".encode())
    for name in filter(None, os.environ.get(FILES, "").split(os.pathsep)):
        found.update(f"{name}:{digest_of(Path(name))}\n".encode())
    return found.hexdigest()


def digest_of(path: Path) -> str:
    """The checksum of a file's content."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

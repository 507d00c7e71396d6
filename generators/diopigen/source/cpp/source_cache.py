"""Remembers what was found in C++ sources, for as long as no file that was read has other content."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from diopigen.kept import Damaged, read_checked, write_checked

_VERSION = 3
_STATES = 4  # of one source: several checkouts, or branches of one, may share a cache


class SourceCache:
    """One file: a line with its version and checksum, and a line of entries in JSON.

    An entry holds the digests of its source and of all headers that the source includes. `roots` are the folders that
    lie elsewhere in another checkout, by the words that stand for them in the file, e.g. {"${root}": "/src/diopigen"}.
    """

    def __init__(self, path: Path, roots: Mapping[str, Path]) -> None:
        self.path = path
        self.damaged = False  # there was a file, and it was not one of ours
        self._roots = {word: f"{folder}/" for word, folder in roots.items()}
        self._digests: dict[str, str] = {}
        self._changed = False
        self._entries: dict[str, list[dict[str, Any]]] = self._read()

    def found(self, source: str, flags: Sequence[str]) -> dict[str, Any] | None:
        """What was found in `source`, or None if it, a header or a flag has changed."""
        for entry in self._entries.get(source, ()):
            if entry["flags"] == list(flags) and all(self.digest(p) == digest for p, digest in entry["read"].items()):
                return dict(entry["report"])
        return None

    def keep(self, source: str, flags: Sequence[str], read: Sequence[str], report: Mapping[str, Any]) -> None:
        """Remembers `report`; `read` are the absolute paths of the source, its headers, and where others may appear."""
        entry = {"flags": list(flags), "read": {path: self.digest(path) for path in read}, "report": dict(report)}
        self._entries[source] = [entry, *self._entries.get(source, ())][:_STATES]
        self._changed = True

    def write(self, sources: Sequence[str]) -> None:
        """Writes the entries of `sources`, and forgets all others. A folder that is read-only is no error."""
        kept = {source: self._entries[source] for source in sources if source in self._entries}
        if len(kept) == len(self._entries) and not self._changed and not self.damaged:
            return
        write_checked(self.path, _VERSION, self._portable(json.dumps(kept, sort_keys=True)))

    def digest(self, path: str) -> str:
        """A hash of the file's content; empty if it cannot be read."""
        known = self._digests.get(path)
        if known is None:
            try:
                known = hashlib.blake2b(Path(path).read_bytes(), digest_size=16).hexdigest()
            except OSError:
                known = ""
            self._digests[path] = known
        return known

    def _read(self) -> dict[str, list[dict[str, Any]]]:
        try:
            text = read_checked(self.path, _VERSION)
            return {} if text is None else dict(json.loads(self._local(text)))
        except (Damaged, ValueError):
            self.damaged = True
            return {}

    def _portable(self, text: str) -> str:
        for word, folder in self._roots.items():
            text = text.replace(_quoted(folder), f"{word}/")
        return text

    def _local(self, text: str) -> str:
        for word, folder in self._roots.items():
            text = text.replace(f"{word}/", _quoted(folder))
        return text


def _quoted(text: str) -> str:
    """`text` as it stands in JSON."""
    return json.dumps(text)[1:-1]

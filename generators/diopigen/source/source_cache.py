"""Remembers what was found in C++ sources, for as long as no file that was read has other content."""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_VERSION = 1


class SourceCache:
    """One JSON file. An entry holds the digests of its source and of all headers that the source includes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged = False  # there was a file, and it was not one of ours
        self._digests: dict[str, str] = {}
        self._entries = self._read()
        self._before = json.dumps(self._entries, sort_keys=True)

    def found(self, source: str, flags: Sequence[str]) -> dict[str, Any] | None:
        """What was found in `source`, or None if it, a header or a flag has changed."""
        entry = self._entries.get(source)
        if entry is None or entry["flags"] != list(flags):
            return None
        fresh = all(self.digest(path) == digest for path, digest in entry["read"].items())
        return dict(entry["report"]) if fresh else None

    def keep(self, source: str, flags: Sequence[str], read: Sequence[str], report: Mapping[str, Any]) -> None:
        """Remembers `report`; `read` are the absolute paths of the source and its headers."""
        self._entries[source] = {
            "flags": list(flags),
            "read": {path: self.digest(path) for path in read},
            "report": dict(report),
        }

    def write(self, sources: Sequence[str]) -> None:
        """Writes the entries of `sources`, and forgets all others. A folder that is read-only is no error."""
        kept = {source: self._entries[source] for source in sources if source in self._entries}
        text = json.dumps(kept, sort_keys=True)
        if text == self._before and not self.damaged:
            return
        content = json.dumps({"version": _VERSION, "checksum": _checksum(text), "entries": kept}, sort_keys=True)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=self.path.parent, delete=False, encoding="utf-8") as file:
                file.write(content)
            os.replace(file.name, self.path)
        except OSError:
            return

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

    def _read(self) -> dict[str, Any]:
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError):
            self.damaged = True
            return {}
        try:
            content = json.loads(text)
            if content["version"] != _VERSION:
                return {}
            entries = content["entries"]
            self.damaged = content["checksum"] != _checksum(json.dumps(entries, sort_keys=True))
            return {} if self.damaged else dict(entries)
        except (ValueError, KeyError, TypeError):
            self.damaged = True
            return {}


def _checksum(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

"""What a run wrote, with hashes: tells our files from hand-edited ones, finds orphans, and an unchanged tree."""

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath

from diopigen.atomic import MALFORMED

MARK = "enerated by diopigen"  # in the first line of what we write


@dataclass(slots=True, kw_only=True)
class Manifest:
    """The record of one output root; paths are relative to it, with forward slashes."""

    files: dict[str, str] = field(default_factory=dict)  # e.g. {"include/diopi/device.h": "9f86d0..."}
    # What runs that were killed meant to write: the hashes that a file may have beside the one in `files`.
    writing: dict[str, list[str]] = field(default_factory=dict)

    def text(self) -> str:
        record: dict[str, object] = {"files": dict(sorted(self.files.items()))}
        if self.writing:
            record["writing"] = dict(sorted(self.writing.items()))
        return json.dumps(record, indent=1) + "\n"

    def hashes(self, path: str) -> list[str]:
        """What the file at `path` may hold of ours; none where it is not listed."""
        return [*([self.files[path]] if path in self.files else []), *self.writing.get(path, [])]


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def file_hash(path: Path | str) -> str | None:
    """The hash of a file's bytes, or None if there is none to read."""
    try:
        if not os.path.isfile(path):  # a pipe would not end
            return None
        with open(path, "rb") as stream:
            return hashlib.sha256(stream.read()).hexdigest()
    except (OSError, ValueError):
        return None


def read_manifest(path: Path, root: Path) -> Manifest:
    """The manifest at `path`; an absent or damaged one is empty, and then the mark in each file decides.

    It is checked in, so others may have written it: what leads out of `root`, by name or by link, is not of it.
    """
    try:
        found = _manifest_of(json.loads(path.read_text(encoding="utf-8")))
        kept = set(_inside((*found.files, *found.writing), root))
    except (OSError, *MALFORMED):
        return Manifest()
    return Manifest(
        files={name: hash_ for name, hash_ in found.files.items() if name in kept},
        writing={name: hashes for name, hashes in found.writing.items() if name in kept},
    )


def _manifest_of(record: object) -> Manifest:
    """Raises one of MALFORMED. A run with nothing to do loads no pydantic, which takes as long as the rest of it."""
    match record:
        case {"files": dict(files), **more} if all(map(_is_text, files.values())):
            match more.get("writing", {}):
                case dict(writing) if all(isinstance(w, list) and all(map(_is_text, w)) for w in writing.values()):
                    return Manifest(files=files, writing=writing)
    raise ValueError("this is no manifest")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _inside(names: tuple[str, ...], root: Path) -> Iterator[str]:
    """The names of files below `root`."""
    real = os.path.realpath(root)

    @cache
    def holds(folder: str) -> bool:
        return os.path.commonpath((real, os.path.realpath(root / folder))) == real

    for name in names:
        pure = PurePosixPath(name)
        plain = name.isprintable() and pure.as_posix() == name and pure.name and not pure.is_absolute()
        if plain and ".." not in pure.parts and holds(pure.parent.as_posix()):
            yield name


def is_ours(path: Path, relative: str, manifest: Manifest) -> bool:
    """Whether the file at `path` is as we left it: listed with its hash, or unlisted but marked as generated."""
    recorded = manifest.hashes(relative)
    if recorded:
        return file_hash(path) in recorded
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            return MARK in stream.read(400)
    except OSError:
        return True

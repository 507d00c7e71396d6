"""What a run wrote, with hashes: tells our files from hand-edited ones, finds orphans, and an unchanged tree."""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

MARK = "enerated by diopigen"  # in the first line of what we write


@dataclass(slots=True, kw_only=True)
class Manifest:
    """The record of one output root; paths are relative to it, with forward slashes."""

    files: dict[str, str] = field(default_factory=dict)  # ex) {"include/diopi/device.h": "9f86d0..."}

    def text(self) -> str:
        return json.dumps({"files": dict(sorted(self.files.items()))}, indent=1) + "\n"


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def file_hash(path: Path) -> str | None:
    """The hash of a file's bytes, or None if there is none to read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def read_manifest(path: Path) -> Manifest:
    """The manifest at `path`; an absent or damaged one is empty, and then the mark in each file decides."""
    try:
        files = json.loads(path.read_text(encoding="utf-8"))["files"]
        if isinstance(files, dict) and all(isinstance(v, str) for v in files.values()):
            return Manifest(files=dict(files))
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return Manifest()


def is_ours(path: Path, relative: str, manifest: Manifest) -> bool:
    """Whether the file at `path` is as we left it: listed with its hash, or unlisted but marked as generated."""
    recorded = manifest.files.get(relative)
    if recorded is not None:
        return file_hash(path) == recorded
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            return MARK in stream.read(400)
    except OSError:
        return True

"""Whether anything changed since the last run, found by hashing alone; imports nothing heavy."""

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

from diopigen.atomic import scratch_of, write_text
from diopigen.emit.manifest import file_hash, read_manifest
from diopigen.malformed import MALFORMED

_RECORD = ".fresh.json"
_SOURCES = (
    ".py",
    ".lark",
    ".yaml",
    ".j2",
    ".h",
    ".hpp",
    ".cuh",
    ".cpp",
    ".cc",
    ".cxx",
    ".c++",
    ".C",
    ".cu",
    ".c",
    ".txt",
)


def input_files(root: Path, vendor: str | None, config: Path | None = None) -> tuple[Path, ...]:
    """Every file that a run may read, in a fixed order; `config` may lie anywhere."""
    found = tuple(path for _, files in _walk(root, vendor) for path in files)
    return found if config is None or config in found else (*found, config)


def input_folders(root: Path, vendor: str | None) -> tuple[Path, ...]:
    """The folders of these files: one changes when a file appears in it, whatever the file's own time is."""
    return tuple(folder for folder, _ in _walk(root, vendor))


def _vendor_and_bases(vendors: Path, vendor: str) -> list[str]:
    """The vendor and every other one whose name is a word of its vendor.yaml, and theirs: its bases are among them."""
    found = [vendor]
    others = sorted(path.parent.name for path in vendors.glob("[!.]*/vendor.yaml"))
    for name in found:  # which grows
        try:
            words = set(
                re.findall(r"\w+", (vendors / name / "vendor.yaml").read_text(encoding="utf-8", errors="replace"))
            )
        except OSError:
            continue
        found += [other for other in others if other in words and other not in found]
    return found


def _walk(root: Path, vendor: str | None) -> Iterator[tuple[Path, list[Path]]]:
    """Each folder with its files."""
    tops = ["schemas", "templates", "generators/diopigen", "runtime_cpp"]
    tops += [] if vendor is None else [f"vendors/{name}" for name in _vendor_and_bases(root / "vendors", vendor)]
    for top in tops:
        for path, folders, files in os.walk(root / top):
            folders[:] = sorted(f for f in folders if not f.startswith((".", "__pycache__", "build")))
            yield Path(path), [Path(path, name) for name in sorted(files) if name.endswith(_SOURCES)]


def request_words(contract: bool, targets: tuple[str, ...], vendor: str | None, config: str | None) -> tuple[str, ...]:
    """What was asked for, as a fingerprint takes it; `config` is what is read instead of the vendor's own."""
    return (repr((contract, targets, vendor, config)),)


def fingerprint(root: Path, inputs: Iterable[Path], words: Iterable[str]) -> str:
    """A hash over the inputs' names and bytes, `words`, and the versions of what generates."""
    digest = hashlib.sha256(
        repr((sys.version_info[:3], installed_version("torch"), installed_version("libclang"))).encode()
    )
    for word in words:
        digest.update(f"{word}\0".encode())
    for path in inputs:
        shown = path.relative_to(root) if path.is_relative_to(root) else path
        digest.update(f"{shown.as_posix()}\0{file_hash(path)}\0".encode())
    return digest.hexdigest()


def installed_version(package: str) -> str | None:
    """e.g. "2.13.0+cpu"; None where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def is_fresh(folder: Path, print_: str, records: Iterable[tuple[Path, Path]]) -> bool:
    """Whether the record in `folder` is of this fingerprint and these outputs, and every output is as written.

    `records` are output roots with their manifests.
    """
    try:
        record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
    except (OSError, *MALFORMED):
        return False
    records = tuple(records)
    return record == _record_of(print_, records) and all(_untouched(root, manifest) for root, manifest in records)


def _record_of(print_: str, records: Iterable[tuple[Path, Path]]) -> dict[str, object]:
    """The manifests are in it, since a run of other targets may have written the same files from other inputs."""
    return {"fingerprint": print_, "manifests": [file_hash(manifest) for _, manifest in records]}


def _untouched(root: Path, manifest: Path) -> bool:
    record = read_manifest(manifest, root)
    if not record.files or record.writing or scratch_of(manifest).exists():  # of a run that was killed
        return False
    return all(file_hash(root / path) == recorded for path, recorded in record.files.items())


def record_fresh(folder: Path, print_: str, records: Iterable[tuple[Path, Path]]) -> None:
    """Remembers that the outputs follow from these inputs; `records` as of `is_fresh`."""
    write_text(folder / _RECORD, json.dumps(_record_of(print_, records)) + "\n")

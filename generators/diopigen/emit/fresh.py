"""Whether anything changed since the last run, found by hashing alone; imports nothing heavy."""

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from diopigen.atomic import MALFORMED, scratch_of, write_text
from diopigen.emit.manifest import file_hash, read_manifest, text_hash
from diopigen.project import Project

_RECORD = ".fresh.json"
_PACKAGES = ("torch", "libclang")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What a run may read, in a fixed order."""

    files: tuple[str, ...] = ()
    folders: tuple[
        str, ...
    ] = ()  # of the files: one changes when a file appears in it, whatever the file's own time is

    def __add__(self, other: "Inputs") -> "Inputs":
        return Inputs(files=(*self.files, *other.files), folders=(*self.folders, *other.folders))


def common_inputs(project: Project) -> Inputs:
    """Whatever the vendor."""
    generator = "generators/diopigen" if project.inside else Path(__file__).parent.parent
    return _inputs(project, ("schemas", "templates", generator, "runtime_cpp"))


def vendor_inputs(project: Project, vendor: str) -> Inputs:
    """Of the vendor and what may be its bases; what is read instead of convert_config.yaml may lie anywhere."""
    folders = [project.vendor_folder(name) for name in _vendor_and_bases(project, vendor)]
    found = _inputs(project, [*folders, *_schemas_elsewhere(project, vendor)])
    config = project.convert_config
    beside = () if config is None or str(config) in found.files else (str(config),)
    return found + Inputs(files=beside)


def _vendor_and_bases(project: Project, vendor: str) -> list[str]:
    """The vendor and every other one whose name is a word of its vendor.yaml, and theirs: its bases are among them."""
    found = [vendor]
    others = project.vendor_names()
    for name in found:  # which grows
        try:
            text = (project.vendor_folder(name) / "vendor.yaml").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        words = set(re.findall(r"\w+", text))
        found += [other for other in others if other in words and other not in found]
    return found


def _schemas_elsewhere(project: Project, vendor: str) -> Iterator[Path]:
    """The folders of the vendor's own operators that are not in its own folder."""
    folder = project.vendor_folder(vendor)
    try:
        text = (folder / "vendor.yaml").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    said = re.search(r"^schemas:(.*(?:\n[ \t-].*)*)", text, re.MULTILINE)
    words = re.findall(r"[^\s,\[\]'\"]+", said[1]) if said else ()
    for path in dict.fromkeys((*((folder / word).resolve() for word in words), *project.more_schemas)):
        if path.is_dir() and not path.is_relative_to(folder):
            yield path


def _inputs(project: Project, tops: Iterable[str | Path]) -> Inputs:
    skipped = str(project.generated)
    found: list[str] = []
    walked: list[str] = []
    for top in tops:
        for path, folders, files in os.walk(project.home / top):
            kept = (f for f in folders if not f.startswith((".", "__pycache__", "build")))
            folders[:] = sorted(f for f in kept if f"{path}/{f}" != skipped)
            walked.append(path)
            found += [f"{path}/{name}" for name in sorted(files) if name.endswith(_SOURCES)]
    return Inputs(files=tuple(found), folders=tuple(walked))


def file_hashes(root: Path, inputs: Inputs) -> str:
    """The names of files, of those below `root` without it, and the hashes of their bytes."""
    prefix = f"{root}/"
    return "".join(f"{path.removeprefix(prefix)}\0{file_hash(path)}\0" for path in inputs.files)


def request_words(contract: bool, targets: tuple[str, ...], vendor: str | None, config: str | None) -> tuple[str, ...]:
    """What was asked for, as a fingerprint takes it; `config` is what is read instead of the vendor's own."""
    return (repr((contract, targets, vendor, config)),)


def fingerprint(hashes: str, words: Iterable[str]) -> str:
    """A hash over those of the inputs, `words`, and the versions of what generates."""
    digest = hashlib.sha256(repr((sys.version_info[:3], *map(installed_version, _PACKAGES))).encode())
    for word in words:
        digest.update(f"{word}\0".encode())
    digest.update(os.fsencode(hashes))
    return digest.hexdigest()


@cache
def installed_version(package: str) -> str | None:
    """e.g. "2.13.0+cpu"; None where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def installed_folders() -> tuple[str, ...]:
    """Where the packages lie that outputs follow from: a folder changes when another version is installed in it."""
    present = (metadata.distribution(name) for name in _PACKAGES if installed_version(name) is not None)
    return tuple(dict.fromkeys(str(Path(str(package.locate_file("")))) for package in present))


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is remembered of a run, in a folder that is not checked in: the fingerprint of what outputs follow from."""

    folder: Path
    words: tuple[str, ...]
    inputs: Inputs
    hashes: str  # of the inputs
    outputs: tuple[tuple[Path, Path], ...]  # roots with their manifests

    def fresh(self) -> bool:
        return is_fresh(self.folder, fingerprint(self.hashes, self.words), self.outputs)

    def was_fresh(self, earlier: Mapping[tuple[str, str], str]) -> bool:
        """Whether the outputs follow from inputs of which some were other texts, by their names and texts now."""
        hashes = self.hashes
        for (path, text), before in earlier.items():
            hashes = hashes.replace(f"{path}\0{text_hash(text)}\0", f"{path}\0{text_hash(before)}\0")
        return is_fresh(self.folder, fingerprint(hashes, self.words), self.outputs)

    def keep(self) -> None:
        record_fresh(self.folder, fingerprint(self.hashes, self.words), self.outputs)


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
    return all(file_hash(f"{root}/{path}") == recorded for path, recorded in record.files.items())


def record_fresh(folder: Path, print_: str, records: Iterable[tuple[Path, Path]]) -> None:
    """Remembers that the outputs follow from these inputs; `records` as of `is_fresh`."""
    write_text(folder / _RECORD, json.dumps(_record_of(print_, records)) + "\n")

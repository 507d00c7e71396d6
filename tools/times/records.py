"""What the last build of each folder and the last test run took, and those before them, as they were recorded."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Generic, TypeVar

Seconds = dict[str, float]  # of each part by its name
T = TypeVar("T")


@dataclass(frozen=True)
class Build:
    """One build of one folder."""

    wall: float = 0.0
    processor: float = 0.0
    units: Seconds = field(
        default_factory=dict
    )  # by source, e.g. "runtime_cpp/kernels/normalization/softmax.cpp", or by output


@dataclass(frozen=True)
class Tests:
    """One test run."""

    wall: float = 0.0
    files: dict[str, tuple[float, float]] = field(default_factory=dict)  # by file: seconds, processor seconds
    fixtures: dict[str, tuple[float, float, int]] = field(
        default_factory=dict
    )  # e.g. "tests::libraries"; and how often


@dataclass(frozen=True)
class Run(Generic[T]):
    """The last run, and the one before it if it is known."""

    last: T
    before: T | None = None


def recorded_builds(folder: Path) -> dict[str, Run[Build]]:
    """The builds recorded in a folder (build/times), by the name of what was built, e.g. "droplet"."""
    found = {}
    for path in sorted(folder.glob("build-*.json")):
        document = None if path.name.endswith(".previous.json") else _document(path)
        if document is not None:
            before = _document(path.with_suffix(".previous.json"))
            found[path.stem.removeprefix("build-")] = Run(_build(document), before and _build(before))
    return found


def recorded_tests(folder: Path) -> Run[Tests] | None:
    """The test run recorded in a folder (build/times); None if there is none."""
    document = _document(folder / "tests.json")
    before = _document(folder / "tests.previous.json")
    return None if document is None else Run(_tests(document), before and _tests(before))


def by_folder(parts: Mapping[str, float]) -> Seconds:
    """The sums of the parts in each folder."""
    return _sums((PurePosixPath(name).parent.as_posix(), seconds) for name, seconds in parts.items())


def _build(document: dict[str, Any]) -> Build:
    units = {name: milliseconds / 1000 for name, milliseconds in document["units"].items()}
    return Build(document["wall"], document["processor"], units)


def _tests(document: dict[str, Any]) -> Tests:
    files = [(name.partition("::")[0], values) for name, values in document["tests"].items()]
    wall = _sums((name, values[0]) for name, values in files)
    processor = _sums((name, values[1]) for name, values in files)
    fixtures = {name: (values[0], values[1], int(values[2])) for name, values in document["fixtures"].items()}
    return Tests(document["wall"], {name: (wall[name], processor[name]) for name in wall}, fixtures)


def _sums(parts: Iterable[tuple[str, float]]) -> Seconds:
    sums: Seconds = {}
    for name, seconds in parts:
        sums[name] = sums.get(name, 0.0) + seconds
    return sums


def _document(path: Path) -> dict[str, Any] | None:
    """A record; None where there is none, or only a part of one."""
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found

"""What a release of torch has of all that this checkout uses beside operators: observed, kept as a record, compared."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from diopigen.aten.catalog import TorchMissing, minor
from diopigen.aten.records import NoRecord, installed_minor
from diopigen.aten.uses import Uses
from diopigen.atomic import write_text
from diopigen.diagnostics import Span
from diopigen.source.cpp.clang import parse, virtual_functions


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """What one release has of what was looked for; None for what it lacks."""

    names: Mapping[str, str | None]  # e.g. {"torch.relu": "function"}
    headers: Mapping[str, str | None]  # e.g. {"c10/core/Allocator.h": "has it"}
    virtuals: Mapping[str, tuple[str, ...]]  # e.g. {"c10::Allocator": ("allocate(size_t) = 0", ...)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    what: str  # e.g. "torch.relu"
    place: Span
    old: str | None  # None where the release has no such thing
    new: str | None

    @property
    def breaks(self) -> bool:
        """Something went, or has to be written."""
        return self.new is None or (self.old is None and self.new.endswith("= 0"))


def observe(used: Uses) -> Interface:
    """Of the installed torch. Raises TorchMissing."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        raise TorchMissing("torch is not installed")
    include = Path(spec.origin).parent / "include"
    folders = (include, include / "torch" / "csrc" / "api" / "include")
    headers = [header for header in used.headers if any((folder / header).is_file() for folder in folders)]
    flags = ["-x", "c++", "-std=c++20", "-w", *(f"-I{folder}" for folder in folders)]
    parsed = parse(Path("all_headers.cpp"), flags, "".join(f"#include <{header}>\n" for header in headers))
    return Interface(
        names=_names(used),
        headers={header: "has it" if header in headers else None for header in used.headers},
        virtuals={base: virtual_functions(parsed, base) for base in used.bases},
    )


def _names(used: Uses) -> dict[str, str | None]:
    command = [sys.executable, "-m", "diopigen.aten.observe_names"]
    # torch's tests of process groups read two when they are imported.
    environment = os.environ | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "BACKEND": "gloo", "WORLD_SIZE": "2"}
    done = subprocess.run(
        command, input="\n".join(used.names), capture_output=True, text=True, check=False, env=environment
    )
    if done.returncode != 0:
        raise TorchMissing(f"names of torch cannot be looked up: {done.stderr.strip().splitlines()[-1]}")
    observed: dict[str, str] = json.loads(done.stdout)
    return {name: observed.get(name) for name in used.names}


def write(path: Path, interface: Interface) -> None:
    """As `read` reads it, one entry a line, in order."""
    content = {
        "names": dict(sorted(interface.names.items())),
        "headers": dict(sorted(interface.headers.items())),
        "virtuals": {base: list(found) for base, found in sorted(interface.virtuals.items())},
    }
    write_text(path, json.dumps(content, indent=1) + "\n")


def of_release(word: str, folder: Path, used: Uses) -> Interface:
    """Of `word` as `records.read` takes it: the JSON beside its record, or the installed release.

    Raises NoRecord or TorchMissing.
    """
    for path in (Path(word.removesuffix(".txt") + ".json"), folder / f"{minor(word)}.json"):
        if path.is_file():
            return _read(path)
    if minor(word) == installed_minor():
        return observe(used)
    raise NoRecord(
        f"there is no record of the names and headers of torch {word}; save it with 'diopigen compat --save-torch'"
    )


def _read(path: Path) -> Interface:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return Interface(
            names=content["names"],
            headers=content["headers"],
            virtuals={base: tuple(found) for base, found in content["virtuals"].items()},
        )
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise NoRecord(f"{path} is no record: {error}") from error


def differences(used: Uses, old: Interface, new: Interface) -> Iterator[Difference]:
    """Of all that is used and that both releases were asked for."""
    for places, before, now in ((used.names, old.names, new.names), (used.headers, old.headers, new.headers)):
        for what, place in sorted(places.items()):
            if what in before and what in now and before[what] != now[what]:
                yield Difference(what=what, place=place, old=before[what], new=now[what])
    for base, place in sorted(used.bases.items()):
        had, has = (dict.fromkeys(each.virtuals.get(base, ())) for each in (old, new))
        for function in (f for f in (*had, *has) if (f in had) != (f in has)):
            shown = [function if function in each else None for each in (had, has)]
            yield Difference(what=base, place=place, old=shown[0], new=shown[1])


def unasked(used: Uses, release: Interface) -> int:
    """How many names and headers are used, and are newer than the record."""
    return len({*used.names, *used.headers} - {*release.names, *release.headers})

"""What a built program depends on beside its text, by content: files, the compiler's version, the processor."""

import hashlib
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', re.MULTILINE)
_DEFINED = re.compile(r'^-D\w+="(.+)"$')  # e.g. -DDIOPI_LAUNCHER_HEADER="/usr/share/diopi/launcher.h"
_NATIVE = ("-march=native", "-mcpu=native", "-mtune=native")
# What two processors that get the same code have in common, as Linux says it on x86 and on Arm.
_PROCESSOR = (
    "vendor_id",
    "cpu family",
    "model",
    "stepping",
    "flags",
    "CPU implementer",
    "CPU variant",
    "CPU part",
    "Features",
)


def digest(path: Path) -> str:
    """Of the content of a file; "" where there is none."""
    try:
        found = path.stat()
    except OSError:
        return ""
    return _read_digest(path, (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))


@cache
def _read_digest(path: Path, stamp: tuple[int, ...]) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digests(paths: Iterable[Path]) -> list[str]:
    """A line for each file. Where a file lies is no part of it."""
    return [f"{path.name} {digest(path)}" for path in paths]


def headers(source: str, flags: Sequence[str], folders: Sequence[str]) -> list[Path]:
    """The headers of the given folders that a source includes, directly or not, and those that a flag names.

    Every include that is written counts, also one that a condition hides. Headers of the system are the compiler's.
    """
    waiting = [(Path(), name) for name in _INCLUDE.findall(source)]
    waiting += [(Path(), match[1]) for match in map(_DEFINED.match, flags) if match]
    found: dict[Path, None] = {}
    while waiting:
        own, name = waiting.pop()
        path = _place(name, [own, *map(Path, folders)])
        if path is not None and path not in found:
            found[path] = None
            waiting += [(path.parent, included) for included in _included(path, digest(path))]
    return sorted(found)


def _place(name: str, folders: Sequence[Path]) -> Path | None:
    for folder in folders:
        path = folder / name
        if path.is_absolute() and path.is_file():
            return Path(os.path.normpath(path))
    return None


@cache
def _included(path: Path, content: str) -> tuple[str, ...]:
    return tuple(_INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace")))


def compiler(path: str) -> str:
    """What the compiler says of its version; "" where there is none."""
    return _version(path, digest(Path(shutil.which(path) or path)))


@cache
def _version(path: str, content: str) -> str:
    try:
        told = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return f"{told.stdout}{content}"


def processor(flags: Sequence[str]) -> str:
    """The processor, where a flag makes code for the one that compiles; else ""."""
    return _this_processor() if any(flag in _NATIVE for flag in flags) else ""


@cache
def _this_processor() -> str:
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")[0]
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    rows = [line.partition(":") for line in first.splitlines()]
    return "\n".join(f"{name.strip()}:{value}" for name, _, value in rows if name.strip() in _PROCESSOR)

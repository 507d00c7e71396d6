"""Asks clang-tidy about the C++ by hand, as .clang-tidy says: `python -m tools.cpp_tidy`.

Units that include torch are left out, which take seconds each, as are those that need another chip's SDK. A unit is
asked about again only when something that it includes has changed.
"""

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import scipy_openblas32

from tools.cpp_format import ROOT, sources

_TIDY = Path(sys.executable).with_name("clang-tidy")
_ASKED = ("runtime_cpp/", "vendors/droplet/")
_FOLDERS = (
    ".",
    "generated/include",
    "runtime_cpp",
    "runtime_cpp/kernels",
    "vendors/droplet",
    "vendors/droplet/runtime",
)
_LAUNCHER = "vendors/droplet/launcher.h"
_TORCH = ("ATen/", "c10/", "torch/")
_INCLUDE = re.compile(r'^ *# *include [<"]([^>"]+)[>"]', re.MULTILINE)
_CLEAN = ROOT / "build" / "tidy" / "clean.txt"  # a line for each unit without a finding: a hash of all that it reads
_FLAGS = (
    "-std=c++17",
    f'-DDIOPI_LAUNCHER_HEADER="{_LAUNCHER}"',
    '-DDROPLET_OPENBLAS="libscipy_openblas.so"',
    *(f"-I{folder}" for folder in _FOLDERS),
    f"-I{scipy_openblas32.get_include_dir()}",
)


def main() -> int:
    """The exit code is 1 where there is a finding."""
    version = subprocess.run([_TIDY, "--version"], capture_output=True, check=True).stdout
    ground = version + (ROOT / ".clang-tidy").read_bytes() + repr(_FLAGS).encode()
    keys = {unit: _key(unit, ground) for unit in _units()}
    clean = set(_CLEAN.read_text(encoding="utf-8").split()) if _CLEAN.is_file() else set()
    asked = [unit for unit, key in keys.items() if key not in clean]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip(asked, pool.map(_findings, asked), strict=True))
    for finding in dict.fromkeys(text for text in found.values() if text):
        print(finding, file=sys.stderr)
    _CLEAN.parent.mkdir(parents=True, exist_ok=True)
    _CLEAN.write_text(
        "".join(f"{key}\n" for unit, key in sorted(keys.items()) if not found.get(unit)), encoding="utf-8"
    )
    return int(any(found.values()))


def _units() -> Iterator[Path]:
    for path in sources(ROOT):
        shown = path.relative_to(ROOT).as_posix()
        asked = path.suffix == ".cpp" and shown.startswith(_ASKED) and not shown.startswith("runtime_cpp/torch/")
        if asked and not any(name.startswith(_TORCH) for each in _read(path) for name in _included(each)):
            yield path


def _findings(unit: Path) -> str:
    done = subprocess.run(
        [_TIDY, "--quiet", unit, "--", *_FLAGS], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or (done.stderr.strip() if done.returncode else "")


def _key(unit: Path, ground: bytes) -> str:
    digest = hashlib.blake2b(ground, digest_size=16)
    for path in sorted(_read(unit)):
        digest.update(f"{path.resolve().relative_to(ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _read(unit: Path) -> set[Path]:
    """The unit and the files of this project that it includes, those of its includes too."""
    found, waiting = {unit}, [unit]
    while waiting:
        path = waiting.pop()
        for name in (*_included(path), _LAUNCHER):
            there = (folder / name for folder in (path.parent, *map(ROOT.joinpath, _FOLDERS)))
            # What lies above may be another checkout.
            new = {each for each in there if each.is_file() and each.resolve().is_relative_to(ROOT)}
            waiting += new - found
            found |= new
    return found


@cache
def _included(path: Path) -> tuple[str, ...]:
    return tuple(_INCLUDE.findall(path.read_text(encoding="utf-8")))


if __name__ == "__main__":
    sys.exit(main())

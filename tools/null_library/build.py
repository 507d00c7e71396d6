"""Builds the null libraries with g++."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.project import Project
from tools.null_library.source import source

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class NullLibrary:
    """One way to compute nothing."""

    name: str
    number: int  # of the way in null_library.h; 0 has no function at all
    what: str


NULL_LIBRARIES = (
    NullLibrary("empty", 0, "has no function"),
    NullLibrary("idle", 1, "returns success and writes nothing"),
    NullLibrary("zeros", 2, "writes zeros to every output"),
    NullLibrary("copies", 3, "writes its first input to every output"),
)


def build_null_libraries(root: Path, folder: Path) -> dict[str, Path]:
    """`folder`/<name>/libdiopi_impl.so for each of NULL_LIBRARIES, over the contract of the checkout `root`."""
    diagnostics = Diagnostics()
    program = pipeline.run(Project(root=root), diagnostics)
    if program is None or diagnostics.failed:
        raise ValueError("the schemas have errors; 'diopigen lint' shows them")
    folder.mkdir(parents=True, exist_ok=True)
    whole, bare = folder / "whole.cpp", folder / "bare.cpp"
    whole.write_text(source(program), encoding="utf-8")
    bare.write_text('#include "null_library.h"\n', encoding="utf-8")
    found: dict[str, Path] = {}
    for library in NULL_LIBRARIES:
        target = folder / library.name / "libdiopi_impl.so"
        target.parent.mkdir(exist_ok=True)
        compiler = shutil.which("g++") or "c++"
        words = [compiler, "-std=c++17", "-O1", "-w", "-shared", "-fPIC", f"-DNULL_LIBRARY={max(1, library.number)}"]
        words += [f"-I{HERE}", f"-I{root / 'generated' / 'include'}", "-o", str(target)]
        subprocess.run([*words, str(whole if library.number else bare)], check=True)
        found[library.name] = target
    return found

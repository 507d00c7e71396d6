"""Builds the hollow libraries with g++."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.project import Project
from tools.hollow.source import source

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Hollow:
    """One way to be hollow."""

    name: str
    number: int  # of the way in hollow.h; 0 has no function at all
    what: str


HOLLOWS = (
    Hollow("empty", 0, "has no function"),
    Hollow("idle", 1, "returns success and writes nothing"),
    Hollow("zeros", 2, "writes zeros to every output"),
    Hollow("copies", 3, "writes its first input to every output"),
)


def build_hollows(root: Path, folder: Path) -> dict[str, Path]:
    """`folder`/<name>/libdiopi_impl.so for each of HOLLOWS, over the contract of the checkout `root`."""
    diagnostics = Diagnostics()
    program = pipeline.contract(Project(root=root), diagnostics)
    if program is None or diagnostics.failed:
        raise ValueError("the schemas have errors; 'diopigen lint' shows them")
    folder.mkdir(parents=True, exist_ok=True)
    whole, bare = folder / "whole.cpp", folder / "bare.cpp"
    whole.write_text(source(program), encoding="utf-8")
    bare.write_text('#include "hollow.h"\n', encoding="utf-8")
    found: dict[str, Path] = {}
    for hollow in HOLLOWS:
        target = folder / hollow.name / "libdiopi_impl.so"
        target.parent.mkdir(exist_ok=True)
        compiler = shutil.which("g++") or "c++"
        words = [compiler, "-std=c++17", "-O1", "-w", "-shared", "-fPIC", f"-DHOLLOW={max(1, hollow.number)}"]
        words += [f"-I{HERE}", f"-I{root / 'generated' / 'include'}", "-o", str(target)]
        subprocess.run([*words, str(whole if hollow.number else bare)], check=True)
        found[hollow.name] = target
    return found

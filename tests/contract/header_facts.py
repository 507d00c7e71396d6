"""What libclang reads in the checked-in headers."""

from functools import cache
from pathlib import Path

from diopigen.project import Project
from diopigen.source.cpp.c_header import HeaderFunction, read_header

ROOT = Path(__file__).resolve().parents[2]
HEADERS = tuple(sorted(path.stem for path in (ROOT / "generated" / "include" / "diopi").glob("*.h")))


@cache
def declared(project: Project, name: str, language: str = "c") -> tuple[HeaderFunction, ...]:
    """The functions that <diopi/NAME.h> declares, in its order."""
    include = project.generated / "include"
    return read_header(include / "diopi" / f"{name}.h", [include], language)

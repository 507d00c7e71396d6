"""Python and its packages, held against what pyproject.toml asks for."""

import platform
import re
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from diopigen.doctor.check import Check, State, shown_python
from diopigen.project import Project

_REQUIRED_BY_CMAKE = re.compile(r"diopi_require_python_package\(\s*([\w.-]+)")


def package_checks(project: Project, vendor: str | None) -> Iterator[Check]:
    """The interpreter, then the packages of each target; those of `vendor` are needed, of other vendors not."""
    tool, backend = _toml(project.root / "pyproject.toml"), _toml(project.root / "python/torch_dipu/pyproject.toml")
    yield _python(tool)
    for line in tool.get("project", {}).get("dependencies", ()):
        yield _package(project, "generate", line)
    for line in backend.get("build-system", {}).get("requires", ()):
        yield _package(project, "build", line)
    extras = tool.get("project", {}).get("optional-dependencies", {})
    for line in extras.pop("compile", ()):
        yield _package(project, "run", line)
    for name, lines in extras.items():
        if name not in project.vendor_names():
            for line in lines:
                yield _package(project, name, line, needed=False)
    for name in project.vendor_names():
        for line in _of_vendor(project, name, extras):
            yield _package(project, f"vendor {name}", line, needed=name == vendor)


def _of_vendor(project: Project, name: str, extras: dict[str, list[str]]) -> list[str]:
    """What the extra of the vendor's name asks for, and what its CMakeLists.txt requires besides."""
    lines = list(extras.get(name, ()))
    listed = {Requirement(line).name for line in lines}
    cmake = project.vendor_folder(name) / "CMakeLists.txt"
    text = cmake.read_text(encoding="utf-8") if cmake.is_file() else ""
    return lines + [package for package in _REQUIRED_BY_CMAKE.findall(text) if package not in listed]


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError):
        return {}


def _python(tool: dict[str, Any]) -> Check:
    wanted, found = tool.get("project", {}).get("requires-python", ""), platform.python_version()
    fits = SpecifierSet(wanted).contains(found, prereleases=True)
    return Check(
        target="generate",
        what="python",
        state=State.OK if fits else State.WRONG,
        found=found,
        wanted=wanted,
        remedy="" if fits else f"install Python {wanted}, then: make setup PYTHON=<that python>",
    )


def _package(project: Project, target: str, line: str, needed: bool = True) -> Check:
    requirement = Requirement(line)
    wanted = str(requirement.specifier)
    try:
        found = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        found = ""
    fits = bool(found) and requirement.specifier.contains(found, prereleases=True)
    return Check(
        target=target,
        what=requirement.name,
        state=State.OK if fits else State.WRONG if found else State.MISSING,
        found=found or "not installed",
        wanted=wanted,
        remedy="" if fits else f"{shown_python(project.root)} -m pip install '{line}'",
        needed=needed,
    )

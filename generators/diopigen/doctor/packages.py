"""Python and its packages, held against what pyproject.toml asks for, or of an installed package what it does."""

import platform
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from diopigen.doctor.check import Check, State, shown_python
from diopigen.programs import EXTRAS
from diopigen.project import Project

_PACKAGE = "diopigen"
_REQUIRED_BY_CMAKE = re.compile(r"diopi_require_python_package\(\s*([\w.-]+)")


def package_checks(project: Project, vendor: str | None) -> Iterator[Check]:
    """The interpreter, then the packages of each target; those of `vendor` are needed, of other vendors not."""
    asked = _of_checkout(project) if project.inside else _of_package()
    yield _python(project, asked.python)
    for line in asked.generate:
        yield _package(project, "generate", line)
    for line in asked.build:
        yield _package(project, "build", line)
    extras = dict(asked.extras)
    for line in extras.pop("compile", ()):
        yield _package(project, "run", line)
    for name, lines in extras.items():
        if name not in project.vendor_names():
            for line in lines:
                yield _package(project, name, line, needed=False)
    for name in project.vendor_names():
        for line in (*_of_vendor(project, name, extras), *_of_repository(project, name)):
            yield _package(project, f"vendor {name}", line, needed=name == vendor)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What is asked for, each as a requirement, e.g. "click>=8.2.1"."""

    python: str
    generate: tuple[str, ...]
    build: tuple[str, ...] = ()
    extras: dict[str, list[str]]


def _of_checkout(project: Project) -> _Asked:
    asked = _toml(project.root / "pyproject.toml").get("project", {})
    backend = _toml(project.root / "python/torch_dipu/pyproject.toml")
    return _Asked(
        python=asked.get("requires-python", ""),
        generate=tuple(asked.get("dependencies", ())),
        build=tuple(backend.get("build-system", {}).get("requires", ())),
        extras=asked.get("optional-dependencies", {}),
    )


def _of_package() -> _Asked:
    """Of the extras those that serve who writes a vendor."""
    package = metadata.metadata(_PACKAGE)
    requirements = [Requirement(line) for line in package.get_all("Requires-Dist") or ()]
    extras: dict[str, list[str]] = {}
    for name in (*EXTRAS, "compile"):
        found = [one for one in requirements if one.marker is not None and one.marker.evaluate({"extra": name})]
        extras[name] = [f"{one.name}{one.specifier}" for one in found]
    always = tuple(f"{one.name}{one.specifier}" for one in requirements if one.marker is None)
    return _Asked(python=package["Requires-Python"] or "", generate=always, extras=extras)


def _of_repository(project: Project, vendor: str) -> list[str]:
    """What the package of a vendor's own repository depends on."""
    if project.inside or project.own is None or project.own[0] != vendor:
        return []
    found: list[str] = _toml(project.own[1] / "pyproject.toml").get("project", {}).get("dependencies", [])
    return found


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


def _python(project: Project, wanted: str) -> Check:
    found = platform.python_version()
    command = "make setup PYTHON=<that python>" if project.inside else "pip install diopigen for it"
    fits = SpecifierSet(wanted).contains(found, prereleases=True)
    return Check(
        target="generate",
        what="python",
        state=State.OK if fits else State.WRONG,
        found=found,
        wanted=wanted,
        remedy="" if fits else f"install Python {wanted}, then: {command}",
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

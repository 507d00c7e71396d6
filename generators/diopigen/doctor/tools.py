"""Programs that a build calls, and room on the disk."""

import os
import re
import shutil
from collections.abc import Iterator

from packaging.version import Version

from diopigen.doctor.check import Check, State, answer, search_path, shown_python
from diopigen.project import Project

_ROOM = 1 << 30  # bytes; a build takes a tenth of it, the environment with torch is there already

# What the newest standard in use brings: the PyTorch backend is C++20, the rest C++17.
_PROBE = (
    "#include <span>\nconstinit int probe = 0;\nint main() { return static_cast<int>(std::span<int>(&probe, 1)[0]); }\n"
)

_CMAKE_LEAST = re.compile(r"cmake_minimum_required\(VERSION\s+(\d[\d.]*?\d)(?:\.\.\.|[\s)])")
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_USES_CUDA = re.compile(
    r"(?:enable_language|check_language)\s*\(\s*CUDA|find_package\s*\(\s*CUDAToolkit", re.IGNORECASE
)


def tool_checks(project: Project, vendor: str | None) -> Iterator[Check]:
    """The compiler, CMake and Ninja, and nvcc for each vendor whose CMakeLists.txt asks for CUDA."""
    yield _clang(project)
    yield _compiler()
    yield _cmake(project)
    yield _ninja(project)
    for name in project.vendor_names():
        cmake = project.vendor_folder(name) / "CMakeLists.txt"
        if cmake.is_file() and _USES_CUDA.search(cmake.read_text(encoding="utf-8")):
            yield _nvcc(name, name == vendor)
    yield _disk(project)


def _clang(project: Project) -> Check:
    """Whether the library behind the package libclang loads on this machine."""
    remedy = f"{shown_python(project.root)} -m pip install --force-reinstall libclang"
    try:
        from diopigen.source.cpp.clang import NoCompiler, require_clang

        try:
            require_clang()
            fault = ""
        except NoCompiler as error:
            fault, _, remedy = str(error).partition("; ")
    except ImportError as error:
        fault = " ".join(str(error).split()).split(". ")[0]
    return Check(
        target="generate",
        what="libclang.so",
        state=State.WRONG if fault else State.OK,
        found=fault or "loads",
        wanted="",
        remedy=remedy if fault else "",
    )


def _compiler() -> Check:
    name = os.environ.get("CXX") or "g++"
    words = name.split()
    status, text = answer(*words, "-dumpfullversion", "-dumpversion")
    if status != 0:
        remedy = "apt-get install g++, or set CXX to a C++ compiler"
        return Check(target="build", what=name, state=State.MISSING, found="not found", wanted="C++20", remedy=remedy)
    fault, _ = answer(*words, "-std=c++20", "-x", "c++", "-fsyntax-only", "-", text=_PROBE)
    return Check(
        target="build",
        what=name,
        state=State.WRONG if fault else State.OK,
        found=(text.split() or ["?"])[0],
        wanted="C++20",
        remedy="apt-get install g++-12, then set CXX=g++-12" if fault else "",
    )


def _cmake(project: Project) -> Check:
    path = project.home / "CMakeLists.txt"
    least = _CMAKE_LEAST.search(path.read_text(encoding="utf-8")) if path.is_file() else None
    wanted = least[1] if least is not None else "0"
    status, text = answer("cmake", "--version")
    version = _VERSION.search(text)
    there = status == 0 and version is not None
    fits = there and version is not None and Version(version[0]) >= Version(wanted)
    return Check(
        target="build",
        what="cmake",
        state=State.OK if fits else State.WRONG if there else State.MISSING,
        found=version[0] if there and version is not None else "not found",
        wanted=f">={wanted}",
        remedy="" if fits else f"{shown_python(project.root)} -m pip install 'cmake>={wanted}'",
    )


def _ninja(project: Project) -> Check:
    there = shutil.which("ninja", path=search_path()) is not None
    return Check(
        target="build",
        what="ninja",
        state=State.OK if there else State.MISSING,
        found=answer("ninja", "--version")[1].strip() if there else "not found, so make builds",
        wanted="",
        remedy="" if there else f"{shown_python(project.root)} -m pip install ninja",
        needed=False,
    )


def _nvcc(vendor: str, needed: bool) -> Check:
    status, text = answer(os.environ.get("CUDACXX") or "nvcc", "--version")
    release = re.search(r"release ([\d.]+)", text)
    return Check(
        target=f"vendor {vendor}",
        what="nvcc",
        state=State.OK if status == 0 else State.MISSING,
        found=release[1] if status == 0 and release is not None else "not found",
        wanted="",
        remedy="" if status == 0 else "install the CUDA toolkit, then add its bin/ to PATH or set CUDACXX",
        needed=needed,
    )


def _disk(project: Project) -> Check:
    free = shutil.disk_usage(project.root).free
    return Check(
        target="build",
        what="disk",
        state=State.OK if free >= _ROOM else State.MISSING,
        found=f"{free / (1 << 30):.1f} GiB free",
        wanted=f"{_ROOM >> 30} GiB",
        remedy="" if free >= _ROOM else "make clean",
    )

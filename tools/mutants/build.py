"""Builds the faulty libraries beside a build of the vendor that Ninja made, with that build's own commands."""

import os
import shlex
import shutil
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from tools.mutants.mutant import Mutant
from tools.mutants.schemata import DEFINITION, HEADER, planted, woven

# A precompiled header has the headers without their faults.
_DROPPED = ("-MD", "-c", "-O2", "-O3", "-Wall", "-Wextra", "-Werror", "-Winvalid-pch", "-fpch-preprocess")
_TAKING = ("-MF", "-MT", "-o", "-include")
# A fifth of the time of -O3; what is computed does not depend on it.
_ADDED = ("-w", "-O1")
_RULES = (
    "rule compile\n  command = $words -MD -MF $out.d -o $out -c $in\n  depfile = $out.d\n  deps = gcc",
    "  description = compile $out\n",
    "rule link\n  command = $words\n  description = link $out\n",
)
_LONG = 500  # characters: a line of more is a command, which nobody reads


class NotBuilt(Exception):
    """There is no build to plant faults in, or a faulty library does not compile; the text says which."""


@dataclass(frozen=True, slots=True)
class _Unit:
    source: str  # as the command has it
    object: str  # relative to the build
    words: tuple[str, ...]  # the compiler and its options


class Vendor:
    """A build of a vendor, and the checkout whose sources it compiles."""

    def __init__(self, build: Path, root: Path, vendor: str) -> None:
        """Raises NotBuilt where `build` is none that Ninja made."""
        self.build = build.resolve()
        self.root = root.resolve()
        self.name = vendor
        if not (self.build / "build.ninja").exists() or not (self.build / "lib" / "libdiopi_impl.so").exists():
            raise NotBuilt(f"'{build}' is no build that Ninja made; run 'make build IMPL={vendor}'")
        cache = (self.build / "CMakeCache.txt").read_text(encoding="utf-8")
        home = next(line for line in cache.splitlines() if line.startswith("CMAKE_HOME_DIRECTORY:"))
        self.home = home.partition("=")[2]
        values = (line.partition("=") for line in cache.splitlines() if line.startswith("CMAKE_CXX_COMPILER:"))
        compiler = next(value for _, _, value in values)
        commands = [c[c.index(compiler) :] if compiler in c else c for c in self._commands()]  # without a launcher
        self.link = next(c for c in commands if "lib/libdiopi_impl.so" in c and "-shared" in c)
        self.units = tuple(_unit(c) for c in commands if "-c" in c and c[c.index("-o") + 1] in self.link)

    def _commands(self) -> list[list[str]]:
        ran = ninja(self.build, "-t", "commands", "lib/libdiopi_impl.so")
        # shlex leaves the backslash of "\\$ORIGIN" in
        lines = [shlex.split(line.replace("\\$", "$")) for line in ran.splitlines()]
        return [[word for word in line if word not in (":", "&&")] for line in lines]

    def moved(self, word: str, tree: Path) -> str:
        """A word of a command, with `tree` in the place of the checkout for all that is compiled."""
        for folder in ("runtime_cpp", f"vendors/{self.name}", "generated"):
            word = word.replace(f"{self.home}/{folder}", f"{tree}/{folder}")
        return word


def ninja(folder: Path, *arguments: str) -> str:
    """What Ninja prints. Raises NotBuilt with its words where it fails."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    program = shutil.which("ninja", path=path)
    if program is None:
        raise NotBuilt("there is no 'ninja'; run 'make setup'")
    ran = subprocess.run([program, "-C", str(folder), *arguments], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        said = f"{ran.stdout}{ran.stderr}"
        lines = [line for line in said[said.find("FAILED") :].splitlines() if len(line) < _LONG]
        raise NotBuilt("\n".join(lines[:40]))
    return ran.stdout


def _unit(words: list[str]) -> _Unit:
    kept: list[str] = []
    for index, word in enumerate(words):
        if word not in _DROPPED and word not in _TAKING and words[index - 1] not in _TAKING:
            kept.append(word)
    return _Unit(source=kept[-1], object=words[words.index("-o") + 1], words=tuple(kept[:-1]))


def build_mutants(vendor: Vendor, mutants: tuple[Mutant, ...], folder: Path, jobs: int) -> dict[str, Path]:
    """The folder of the libraries of each mutant, by name; "" is the library without a fault.

    One library has all faults that a process can choose; the others have one each. Raises NotBuilt and Misplaced.
    """
    together = tuple(m for m in mutants if not m.alone)
    lines = list(_RULES)
    libraries: dict[str, Path] = {}
    if together:
        tree = folder / "tree"
        _copy(vendor, tree, together)
        lines += _library(vendor, vendor.units, tree, folder / "all", {})
        libraries |= {m.name: folder / "all" for m in together} | {"": folder / "all"}
    for mutant in (m for m in mutants if m.alone):
        at = folder / "alone" / mutant.name.replace("/", "-")
        lines += _alone(vendor, mutant, at)
        libraries[mutant.name] = at
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "build.ninja", "\n".join(lines))
    for at in set(libraries.values()):
        _links(vendor, at)
    ninja(folder, "-j", str(jobs))
    return libraries


def build_changed(vendor: Vendor, texts: dict[str, str], folder: Path, jobs: int) -> Path:
    """The folder of the vendor's library with these texts in the place of some of its sources, by their names.

    Raises NotBuilt.
    """
    _write(folder / "build.ninja", "\n".join([*_RULES, *_changed(vendor, texts, folder)]))
    _links(vendor, folder)
    ninja(folder, "-j", str(jobs))
    return folder


def _copy(vendor: Vendor, tree: Path, mutants: tuple[Mutant, ...]) -> None:
    by_source: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        by_source[mutant.source].append(mutant)
    wanted = {tree / "planted.h", tree / "planted.cpp"}
    for top in ("runtime_cpp", f"vendors/{vendor.name}", "generated/include", f"generated/{vendor.name}"):
        for path in sorted((vendor.root / top).rglob("*")):
            if path.suffix not in (".cpp", ".h"):
                continue
            name = path.relative_to(vendor.root).as_posix()
            text = path.read_text(encoding="utf-8")
            wanted.add(tree / name)
            _write(tree / name, woven(tuple(by_source.pop(name, ())), text))
    for name in by_source:
        raise NotBuilt(f"{by_source[name][0].span}: there is no source '{name}'")
    for path in tree.rglob("*"):
        if path.is_file() and path not in wanted:
            path.unlink()
    _write(tree / "planted.h", HEADER)
    _write(tree / "planted.cpp", DEFINITION)


def _write(path: Path, text: str) -> None:
    """Only where that changes something, so that nothing is compiled twice."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _library(vendor: Vendor, units: tuple[_Unit, ...], tree: Path, at: Path, objects: dict[str, str]) -> list[str]:
    """Ninja's text for a library of `units` compiled from `tree`; `objects` are taken as they are."""
    lines = []
    swapped = dict(objects)
    for index, unit in enumerate(units):
        source = vendor.moved(unit.source, tree)
        words = [vendor.moved(word, tree) for word in unit.words]
        target = f"{at}/objects/{index}-{Path(source).stem}.o"
        swapped[unit.object] = target
        lines.append(_compile(target, source, [*words, *_ADDED, "-include", f"{tree}/planted.h"]))
    extra = f"{at}/objects/planted.o"
    lines.append(_compile(extra, f"{tree}/planted.cpp", [units[0].words[0], "-fPIC", "-O1"]))
    return [*lines, _link(vendor, at, swapped, [extra])]


def _alone(vendor: Vendor, mutant: Mutant, at: Path) -> list[str]:
    """Ninja's text for the vendor's library with one of its sources replaced."""
    original = vendor.root / mutant.source
    if not original.exists():
        raise NotBuilt(f"{mutant.span}: there is no source '{mutant.source}'")
    try:
        return _changed(vendor, {mutant.source: planted(mutant, original.read_text(encoding="utf-8"))}, at)
    except NotBuilt as error:
        raise NotBuilt(f"{mutant.span}: {error}") from None


def _changed(vendor: Vendor, texts: dict[str, str], at: Path) -> list[str]:
    lines, objects = [], {}
    for source, text in texts.items():
        changed = at / Path(source).name
        _write(changed, text)
        unit = next((u for u in vendor.units if u.source == f"{vendor.home}/{source}"), None)
        if unit is None:
            raise NotBuilt(f"'{source}' is compiled with others; it cannot be planted alone")
        objects[unit.object] = f"{at}/{changed.stem}.o"
        beside = f"-I{Path(unit.source).parent}"
        lines.append(_compile(objects[unit.object], str(changed), [*unit.words, beside, *_ADDED]))
    return [*lines, _link(vendor, at, objects, [])]


def _compile(target: str, source: str, words: list[str]) -> str:
    return f"build {target}: compile {source}\n  words = {_quoted(words)}\n"


def _link(vendor: Vendor, at: Path, objects: dict[str, str], extra: list[str]) -> str:
    target = f"{at}/libdiopi_impl.so"
    words = [{**objects, "lib/libdiopi_impl.so": target}.get(word, word) for word in vendor.link]
    words = [str(vendor.build / word) if (vendor.build / word).is_file() else word for word in words]
    words = [word for word in words if not word.startswith("-Wl,--dependency-file=")]  # newer CMakes keep one
    inputs = " ".join([word for word in words if word.endswith(".o")] + extra)
    return f"build {target}: link {inputs}\n  words = {_quoted([*words, *extra])}\n"


def _quoted(words: list[str]) -> str:
    return shlex.join(words).replace("$", "$$")


def _links(vendor: Vendor, at: Path) -> None:
    """The runtimes beside the library, as in the build."""
    at.mkdir(parents=True, exist_ok=True)
    for library in (vendor.build / "lib").glob("*.so"):
        if library.name != "libdiopi_impl.so" and not library.name.startswith(("_C.", "libtorch")):
            link = at / library.name
            link.unlink(missing_ok=True)
            link.symlink_to(library.resolve())

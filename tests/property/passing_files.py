"""Mangled files that pass lint: all that is generated from them must compile, header, adaptor, kernels and wrappers.

`python -m tests.property.passing_files --count 1000` goes on until so many have changed what is generated; `--seed 17`
tries one again. Compilers look at the syntax alone; what is as it was before the change is not compiled again.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path

from tests.property.odd_files import KINDS, ROOT, Fuzzer, Kind, apart, called, header_complaints, kept_traceback

_LINTED = tuple(kind for kind in KINDS if kind.command[0] == "lint")
_ALL = ("all", "--vendor", "chip", "--out")
_STRICTLY = ("-Wall", "-Wextra", "-Werror", "-Wno-deprecated-declarations", "-fsyntax-only")
_TORCH = ("ATen/core/Tensor.h", "torch/library.h", "c10/core/DeviceGuard.h")  # what each wrapper includes
_SECONDS = 600.0  # for one file, on a machine that has other things to do
_OTHER = "no other file is generated"

Sources = dict[str, str]


def _flags(out: Path) -> tuple[str, ...]:
    """Of adaptor and kernels, as vendors compile them."""
    own = (out / "include", ROOT / "runtime_cpp", ROOT / "runtime_cpp" / "kernels", out / "chip")
    return ("-std=c++17", *(f"-I{path}" for path in own), f"-I{out / 'chip' / 'declarations' / 'chip'}")


def _torch_flags() -> tuple[str, ...]:
    """Of the wrappers and of the headers of torch before them, but for what is generated."""
    from torch.utils.cpp_extension import include_paths

    runtime = ROOT / "runtime_cpp"
    return (
        "-std=c++20",
        f"-I{runtime / 'torch'}",
        f"-I{runtime / 'compiler'}",
        *(f"-isystem{p}" for p in include_paths()),
    )


@dataclass(slots=True)
class Passing:
    """A project, what is generated from it, and torch's headers, which are compiled once."""

    folder: Path
    fuzzer: Fuzzer = field(init=False)
    before: Sources = field(init=False)
    torch: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.fuzzer = Fuzzer(self.folder / "project")
        code, said = self._generate(self.folder / "before")
        assert code == 0, said
        self.before = _sources(self.folder / "before")
        header = self.folder / "torch.h"
        header.write_text("".join(f"#include <{name}>\n" for name in _TORCH), encoding="utf-8")
        flags = _torch_flags()
        subprocess.run(["g++", "-x", "c++-header", *flags, str(header), "-o", f"{header}.gch"], check=True)
        self.torch = ("-include", str(header), *flags)
        unchanged = self._complaints(self.folder / "before", all_of_it=True)
        assert not unchanged, unchanged

    def fault(self, seed: int) -> tuple[bool, str | None]:
        """Whether the file of this seed passes and changes what is generated, and what is wrong then."""
        passed = True

        def ask(kind: Kind) -> str:
            nonlocal passed
            found = apart(lambda: self._answer(kind), _SECONDS)
            passed = found != _OTHER
            return found if passed else ""

        found = self.fuzzer.answer(seed, _LINTED, ask)
        return passed, found

    def _generate(self, out: Path) -> tuple[int, str]:
        return called(self.fuzzer.root, (*_ALL, str(out)))

    def _answer(self, kind: Kind) -> str:
        if called(self.fuzzer.root, kind.command)[0] != 0:
            return _OTHER
        with tempfile.TemporaryDirectory() as place:
            out = Path(place)
            code, said = self._generate(out)
            if code != 0:
                return f"it passes lint, and 'all' ends with {code}: {said[-2000:]}{kept_traceback(said)}"
            return self._complaints(out)

    def _complaints(self, out: Path, all_of_it: bool = False) -> str:
        """What compilers say of what is not as it was; _OTHER where all is."""
        now = _sources(out)
        changed = [path for path, text in now.items() if all_of_it or self.before.get(path) != text]
        if not changed:
            return _OTHER
        header = any(path.startswith("include/") for path in changed)
        chosen = [path for path in (now if header else changed) if path.endswith(".cpp")]
        wrappers = [path for path in chosen if path.startswith("torch_dipu-")]
        said = header_complaints(self.fuzzer.root) if header and not all_of_it else ""
        for path in (path for path in chosen if path not in wrappers):
            said = said or _said([*_flags(out), str(out / path)], "")
        if wrappers and not said:
            text = "".join(f'#include "{out / path}"\n' for path in wrappers)
            said = _said([*self.torch, f"-I{out / 'include'}", "-x", "c++", "-"], text)
        return said


def _sources(out: Path) -> Sources:
    paths = sorted(path for suffix in ("*.h", "*.hpp", "*.cpp") for path in out.rglob(suffix))
    return {path.relative_to(out).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def _said(options: list[str], text: str) -> str:
    done = subprocess.run(["g++", *_STRICTLY, *options], input=text, capture_output=True, text=True, check=False)
    return f"it passes lint, and g++ says: {done.stderr[:1500]}" if done.returncode else ""


_mine: list[Passing] = []  # of this process


def _prepare(folder: str) -> None:
    own = Path(tempfile.mkdtemp(dir=folder))
    _mine.append(Passing(own))


def _tried(seed: int) -> tuple[bool, str | None]:
    return _mine[0].fault(seed)


def _results(options: argparse.Namespace) -> Iterator[tuple[bool, str | None]]:
    seeds = iter([options.seed]) if options.seed is not None else count(options.first)
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(options.jobs, initializer=_prepare, initargs=(folder,)) as pool,
    ):
        while batch := list(islice(seeds, 4 * options.jobs)):
            yield from pool.map(_tried, batch)


def main() -> int:
    """The exit code is 1 if a fault was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="files that pass (1000)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--first", type=int, default=random.SystemRandom().randrange(10**9), help="first seed (any)")
    options = parser.parse_args()
    tried, passing, faults = 0, 0, 0
    for passed, fault in _results(options):
        tried, passing, faults = tried + 1, passing + passed, faults + (fault is not None)
        if fault is not None:
            print(fault, flush=True)
        if passing >= options.count:
            break
    print(f"{tried} files, {passing} of them pass and change what is generated, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing import Pool
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


@dataclass(frozen=True, slots=True)
class Ground:
    """What is generated before any change, which compiles, and torch's headers, which are compiled once."""

    before: Sources
    torch: tuple[str, ...]  # the flags of wrappers

    @classmethod
    def laid(cls, folder: Path) -> "Ground":
        header = folder / "torch.h"
        header.write_text("".join(f"#include <{name}>\n" for name in _TORCH), encoding="utf-8")
        flags = _torch_flags()
        subprocess.run(["g++", "-x", "c++-header", *flags, str(header), "-o", f"{header}.gch"], check=True)
        torch = ("-include", str(header), *flags)
        first = Passing(folder / "first", cls({}, torch))
        out = folder / "before"
        code, said = first.generate(out)
        assert code == 0, said
        unchanged = first.complaints(out, all_of_it=True)
        assert not unchanged, unchanged
        return cls(_sources(out), torch)


@dataclass(slots=True)
class Passing:
    """A project, and what is generated from it."""

    folder: Path
    ground: Ground
    fuzzer: Fuzzer = field(init=False)

    def __post_init__(self) -> None:
        self.fuzzer = Fuzzer(self.folder / "project")

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

    def generate(self, out: Path) -> tuple[int, str]:
        return called(self.fuzzer.root, (*_ALL, str(out)))

    def _answer(self, kind: Kind) -> str:
        if called(self.fuzzer.root, kind.command)[0] != 0:
            return _OTHER
        with tempfile.TemporaryDirectory() as place:
            out = Path(place)
            code, said = self.generate(out)
            if code != 0:
                return f"it passes lint, and 'all' ends with {code}: {said[-2000:]}{kept_traceback(said)}"
            return self.complaints(out)

    def complaints(self, out: Path, all_of_it: bool = False) -> str:
        """What compilers say of what is not as it was; _OTHER where all is."""
        now = _sources(out)
        changed = [path for path, text in now.items() if all_of_it or self.ground.before.get(path) != text]
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
            said = _said([*self.ground.torch, f"-I{out / 'include'}", "-x", "c++", "-"], text)
        return said


def _sources(out: Path) -> Sources:
    paths = sorted(path for suffix in ("*.h", "*.hpp", "*.cpp") for path in out.rglob(suffix))
    return {path.relative_to(out).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def _said(options: list[str], text: str) -> str:
    done = subprocess.run(["g++", *_STRICTLY, *options], input=text, capture_output=True, text=True, check=False)
    return f"it passes lint, and g++ says: {done.stderr[:1500]}" if done.returncode else ""


_mine: list[Passing] = []  # of this process


def _prepare(folder: str, ground: Ground) -> None:
    _mine.append(Passing(Path(tempfile.mkdtemp(dir=folder)), ground))


def _tried(seed: int) -> tuple[bool, str | None]:
    return _mine[0].fault(seed)


def _results(seeds: Iterable[int], jobs: int) -> Iterator[tuple[bool, str | None]]:
    """In the order in which they are there: one file may take a hundred times as long as another."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Pool(jobs, initializer=_prepare, initargs=(folder, Ground.laid(Path(folder)))) as pool,
    ):
        yield from pool.imap_unordered(_tried, seeds)


def main() -> int:
    """The exit code is 1 if a fault was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="files that pass (1000)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--first", type=int, default=random.SystemRandom().randrange(10**9), help="first seed (any)")
    options = parser.parse_args()
    tried, passing, faults = 0, 0, 0
    seeds = [options.seed] if options.seed is not None else range(options.first, options.first + 100 * options.count)
    for passed, fault in _results(seeds, options.jobs):
        tried, passing, faults = tried + 1, passing + passed, faults + (fault is not None)
        if fault is not None:
            print(fault, flush=True)
        if passing >= options.count:
            break
        if tried % 200 == 0:
            print(f"{tried} files so far, {passing} of them pass", file=sys.stderr, flush=True)
    print(f"{tried} files, {passing} of them pass and change what is generated, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

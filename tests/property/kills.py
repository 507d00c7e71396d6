"""Programs that are killed at random moments, and disks that are full at each write: the next run is right.

`python -m tests.property.kills --count 300` kills each of the programs below in its turn, with SIGKILL. After that each
file is the old one or the new one; the next run ends as one that was never killed, with the same files and no others.
The conformance suite and the compiled program need a build of droplet, and root for a small disk of their own.
"""

import argparse
import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path

import psutil
import yaml

from tests.processes import PACKAGES
from tests.property.odd_files import ROOT, called, lay_out

LIBRARIES = ROOT / "build" / "droplet" / "lib"
_MARK = "DIOPI_TEST_OF_KILLS"  # in the environment of all that a program starts
_QUICK = 4  # kills of each command for one of each program
_DISKS = 12  # of each program, from one page to nearly enough
_PAGE = 4096
# A disk of $1 bytes at $2 for one command; what is on it afterwards is copied to $3.
_ON_A_DISK = 'mount -t tmpfs -o size=$1 tmpfs "$2" && "${@:4}"; code=$?; cp -a "$2/." "$3"; exit $code'
_PATIENCE = 20.0  # seconds for what a killed program has started to end
_COMPILED = """
import torch, torch_dipu
torch_dipu.start()
run = torch.compile(lambda x: ((x * 2).exp() + 1).cumsum(-1).tanh(), backend="diopi", fullgraph=True)
print(run(torch.linspace(0, 1, 264, device="dipu").reshape(8, 33)).sum().item())
"""

Files = Mapping[str, bytes]


def files(root: Path) -> dict[str, bytes]:
    """The regular files below a folder; links lead to the checkout."""
    found = {}
    for folder, names, here in os.walk(root):
        names[:] = [name for name in names if name != ".cache"]
        for path in (Path(folder, name) for name in here):
            if not path.is_symlink():
                found[path.relative_to(root).as_posix()] = path.read_bytes()
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    """How a program fared that was left alone for so many seconds."""

    seconds: float
    ended: bool  # before it could be killed


class Command:
    """A command of the generator on a small project, in a fork of this process."""

    def __init__(self, name: str, words: tuple[str, ...], folder: Path) -> None:
        self.name, self.words = name, words
        self.begin, self.root = folder / "begin", folder / "project"
        self.before = files(self.begin)
        self.reset()
        start = time.monotonic()
        status = self._in_a_fork(lambda: None)()
        self.usual = time.monotonic() - start
        assert status == 0, f"{name} ends with {status}"
        self.after = files(self.root)

    def reset(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(self.begin, self.root, symlinks=True)

    def _in_a_fork(self, first: Callable[[], None]) -> Callable[[], int]:
        child = os.fork()
        if child == 0:
            code = 70
            try:
                first()
                code, said = called(self.root, self.words)
                if code not in (0, 2):
                    print(said, file=sys.stderr, flush=True)
            finally:
                os._exit(code)
        return lambda: os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def kill(self, rng: random.Random) -> str:
        """What is wrong after a kill; empty where nothing is."""
        self.reset()
        seconds = rng.uniform(0, self.usual)
        child = os.fork()
        if child == 0:
            called(self.root, self.words)
            os._exit(0)
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return self._half() or self._next()

    def fill(self, number: int) -> str | None:
        """What is wrong if the disk is full at a write, counted from 0; None where there are not so many."""
        self.reset()
        status = self._in_a_fork(lambda: _full_from(number))()
        if status == 0:
            return None
        if status != 2:
            return f"a full disk at write {number} ends it with {status}"
        return self._half(strays=False) or self._next()

    def _half(self, strays: bool = True) -> str:
        """A file that is neither the old one nor the new one."""
        for name, content in files(self.root).items():
            kept = name.endswith("MANIFEST.json") or (strays and Path(name).name.startswith("."))
            in_scratch = strays and ".part" in name
            if not (kept or in_scratch) and content not in (self.before.get(name), self.after.get(name)):
                return f"{name} is neither the old one nor the new one"
        return ""

    def _next(self) -> str:
        status = self._in_a_fork(lambda: None)()
        found = files(self.root)
        if status != 0 and not (self.name == "new-vendor" and status == 2 and found == self.after):
            return f"the next run ends with {status}"
        return _difference(found, self.after)


def _full_from(number: int) -> None:
    """Each write to a file fails from that one on, counted from 0."""
    write, done = os.write, iter(range(number))

    def limited(handle: int, content: bytes) -> int:
        if next(done, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(handle, content)

    os.write = limited  # type: ignore[assignment]


def _difference(found: Files, expected: Files) -> str:
    for name in sorted(found.keys() | expected.keys()):
        if name not in expected:
            return f"{name} is left over"
        if found.get(name) != expected[name]:
            return f"{name} is {'missing' if name not in found else 'not what it should be'}"
    return ""


@dataclass(slots=True, kw_only=True)
class Program:
    """A program in a process of its own, with a folder for what it keeps; `answer` is what it found."""

    name: str
    words: tuple[str, ...]
    folder: Path
    answer: Callable[[str, Path], object]
    full: int  # its exit code where the disk is full
    resumed: tuple[str, ...] = ()  # more words, for the run after a kill
    variables: Mapping[str, str] = field(default_factory=dict)
    usual: float = 0.0
    expected: object = None
    kept: frozenset[str] = frozenset()

    def learn(self) -> None:
        """What comes of it when nobody kills it."""
        start = time.monotonic()
        self.expected = self._run()
        self.usual = time.monotonic() - start
        self.kept = frozenset(files(self.folder))

    def kill(self, rng: random.Random) -> str:
        """What is wrong after a kill; empty where nothing is."""
        shutil.rmtree(self.folder, ignore_errors=True)
        seconds = rng.uniform(0, self.usual)
        process = subprocess.Popen(self._command(), **self._ways())  # type: ignore[call-overload]
        time.sleep(seconds)
        process.kill()
        process.communicate()
        if left := _left_after(_PATIENCE):
            return f"it leaves processes behind: {left}"
        return self._next()

    def fill(self, number: int) -> str | None:
        """What is wrong where the disk is full after a part of the writes; None where there are not so many parts."""
        if number == _DISKS:
            return None
        wanted = sum(-(-len(content) // _PAGE) for content in files(self.folder).values())
        size = _PAGE * (1 + wanted * number // _DISKS)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        with tempfile.TemporaryDirectory() as kept:
            disk = ("unshare", "-m", "bash", "-c", _ON_A_DISK, "_", str(size), str(self.folder), kept)
            done = subprocess.run([*disk, *self._command()], check=False, timeout=600, **self._ways())  # type: ignore[call-overload]
            shutil.copytree(kept, self.folder, dirs_exist_ok=True)
        if done.returncode not in (0, self.full):
            return f"a disk of {size} bytes ends it with {done.returncode}: {done.stderr[-2000:]}"
        if done.returncode and os.strerror(errno.ENOSPC) not in done.stderr:
            return f"a disk of {size} bytes is not named: {done.stderr[-2000:]}"
        return self._next()

    def _next(self) -> str:
        more = self.resumed if any(self.folder.glob("*.journal")) else ()
        try:
            found = self._run(*more)
        except ValueError as error:
            return f"the next run: {error}"
        if found != self.expected:
            return f"the next run finds {found}, not {self.expected}"
        strays = set(files(self.folder)) - self.kept
        return f"left over: {', '.join(sorted(strays))}" if strays else ""

    def _command(self, *more: str) -> list[str]:
        return [sys.executable, *(word.format(folder=self.folder) for word in (*self.words, *more))]

    def _ways(self) -> dict[str, object]:
        paths = os.pathsep.join(map(str, PACKAGES))
        own = {name: value.format(folder=self.folder) for name, value in self.variables.items()}
        environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "PYTHONPATH": paths, _MARK: "1", **own}
        return {"cwd": ROOT, "env": environment, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}

    def _run(self, *more: str) -> object:
        """Raises ValueError if it fails."""
        done = subprocess.run(self._command(*more), check=False, timeout=600, **self._ways())  # type: ignore[call-overload]
        if done.returncode:
            raise ValueError(f"exit code {done.returncode}: {done.stderr[-2000:]}")
        return self.answer(done.stdout, self.folder)


def _left_after(seconds: float) -> list[str]:
    """The processes of a killed program that are still there then."""
    end = time.monotonic() + seconds
    while (left := list(_marked())) and time.monotonic() < end:
        time.sleep(0.2)
    return left


def _marked() -> Iterator[str]:
    for process in psutil.process_iter():
        try:
            if process.environ().get(_MARK) and process.status() != psutil.STATUS_ZOMBIE:
                yield " ".join(process.cmdline())[:200]
        except psutil.Error:
            continue


def _verdicts(_: str, folder: Path) -> dict[str, str]:
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return {outcome["id"]: outcome["verdict"] for outcome in report["outcomes"]}


def programs(folder: Path) -> tuple[Program, ...]:
    """Those that need a build of droplet."""
    run = ("-m", "diopi_conformance.cli", "run", "--vendor", "droplet", "--libraries", str(LIBRARIES), "--jobs", "2")
    return (
        Program(
            name="conformance",
            words=(*run, "--family", "activation", "--sample", "3", "--quiet", "--out", "{folder}/report.json"),
            folder=folder / "conformance",
            answer=_verdicts,
            full=2,
            resumed=("--resume",),
        ),
        Program(
            name="compiled step",
            words=("-c", _COMPILED.replace("{", "{{").replace("}", "}}")),
            folder=folder / "programs",
            answer=lambda said, _: said,
            full=1,
            variables={"DICP_CACHE": "{folder}", "DIPU_LIBRARY_DIR": str(LIBRARIES)},
        ),
    )


def commands(folder: Path) -> tuple[Command, ...]:
    """Those of the generator, each with something to write."""
    begin = folder / "begin"
    lay_out(begin)
    for path in sorted((begin / "schemas" / "ops").glob("*.yaml")):
        tree = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
        for entry in tree.values():
            entry["doc"] = f"{entry.get('doc', 'An operator.')} Another sentence."
        path.write_text(yaml.dump(tree, Dumper=yaml.CSafeDumper, sort_keys=False), encoding="utf-8")
    words = {
        "all": ("all", "--vendor", "chip"),
        "fmt": ("fmt",),
        "new-vendor": ("new-vendor", "pebble"),
        "docs": ("docs", "--out", "{root}/pages"),
    }
    return tuple(Command(name, given, folder) for name, given in words.items())


def _turns(chosen: Sequence[Command | Program]) -> list[Command | Program]:
    """Each in its turn; programs, which take longer, less often."""
    quick = [each for each in chosen if isinstance(each, Command)]
    return [*quick * (_QUICK if quick else 0), *(each for each in chosen if isinstance(each, Program))]


def main() -> int:
    """The exit code is 1 if a fault was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300, help="kills, all in all (300)")
    parser.add_argument("--only", metavar="NAME", help="only this program (all)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9), help="of the moments (any)")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    faults = 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        generator = commands(folder)
        run = programs(folder) if LIBRARIES.is_dir() else ()
        chosen = [each for each in (*generator, *run) if options.only in (None, each.name)]
        for each in chosen:
            if isinstance(each, Program):
                each.learn()
        print(
            f"seed {options.seed}; seconds: {', '.join(f'{each.name} {each.usual:.1f}' for each in chosen)}", flush=True
        )
        for number, each in enumerate(islice(cycle(_turns(chosen)), options.count)):
            if fault := each.kill(rng):
                faults += 1
                print(f"{each.name}, kill {number}: {fault}", flush=True)
        writes = 0
        for each in chosen:
            if isinstance(each, Program) and os.geteuid() != 0:
                print(f"{each.name}: no full disk, which needs root")
                continue
            number = 0
            while (found := each.fill(number)) is not None:
                number += 1
                if found:
                    faults += 1
                    print(f"{each.name}: {found}", flush=True)
            writes += number
    print(f"{options.count} kills, {writes} full disks, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

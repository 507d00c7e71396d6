"""What ninja knows about a build folder: what it would make, from which sources, and how long that took before."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

_CACHE_ENTRY = re.compile(r"^(CMAKE_GENERATOR|CMAKE_MAKE_PROGRAM):\w+=(.*)$", re.MULTILINE)
_OBJECT = re.compile(r"^build ((?:\$.|[^:$ ])+): \w+_COMPILER__\S+ ((?:\$.|[^$\s])+)", re.MULTILINE)
_ESCAPE = re.compile(r"\$(.)")
MARK = "\x1e"
STATUS = f"{MARK}%f/%t{MARK}"  # NINJA_STATUS: no compiler begins a line like that


@dataclass(frozen=True)
class Entry:
    """A line of .ninja_log: when an output was made, in milliseconds after its build began."""

    begin: int
    end: int
    stamp: str  # the output's time of change, and the digest of its command

    @property
    def milliseconds(self) -> int:
        return self.end - self.begin


@dataclass(frozen=True)
class Finished:
    """A line with which ninja says that an output is made."""

    output: str  # e.g. "standalone/CMakeFiles/diopirt.dir/abi.cpp.o"
    done: int  # outputs that are made
    total: int  # outputs that this run makes


def program(folder: Path) -> str | None:
    """The ninja that a folder was configured for; None for another generator, or if it was never configured."""
    try:
        text = (folder / "CMakeCache.txt").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = dict(_CACHE_ENTRY.findall(text))
    return found.get("CMAKE_MAKE_PROGRAM") if found.get("CMAKE_GENERATOR") == "Ninja" else None


def planned(ninja: str, folder: Path) -> tuple[str, ...]:
    """The outputs that a build would make now, in ninja's order; nothing where ninja cannot tell."""
    # In a dry run ninja stops at its own file, which CMake's globs mark as old; under another name it is no output.
    copy = folder / "planned.ninja"
    try:
        copy.write_bytes((folder / "build.ninja").read_bytes())
        command = [ninja, "-C", str(folder), "-f", copy.name, "-n"]
        environment = {**os.environ, "NINJA_STATUS": STATUS}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False)
    except OSError:
        return ()
    finally:
        copy.unlink(missing_ok=True)
    lines = (finished(line) for line in ran.stdout.split("\n"))
    return tuple(line.output for line in lines if line is not None)


def finished(line: str) -> Finished | None:
    """What a line says if it is one of ninja's, as STATUS asks for them; None for anything else."""
    if not line.startswith(MARK):
        return None
    count, _, description = line[1:].partition(MARK)
    done, _, total = count.partition("/")
    return Finished(description.rpartition(" ")[2].strip(), int(done), int(total))


def sources(folder: Path, root: Path) -> dict[str, str]:
    """The source of each object, relative to `root` if it is inside, e.g. "runtime_cpp/kernels/sorting/sort.cpp"."""
    try:
        text = (folder / "build.ninja").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    found = ((_ESCAPE.sub(r"\1", output), _ESCAPE.sub(r"\1", source)) for output, source in _OBJECT.findall(text))
    return {output: relative(source, folder, root) for output, source in found}


def relative(path: str, folder: Path, root: Path) -> str:
    """A path of a build's files, relative to `root` if it is inside; one relative to the folder stays."""
    whole = Path(path)
    if not whole.is_absolute():
        return path
    inside = [base for base in (folder.absolute(), root) if whole.is_relative_to(base)]
    return whole.relative_to(inside[0]).as_posix() if inside else path


def log(folder: Path) -> dict[str, Entry]:
    """The last entry of each output; of several outputs of one command only the first is kept."""
    try:
        lines = (folder / ".ninja_log").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    found: dict[str, Entry] = {}
    for line in lines:
        fields = line.split("\t")
        if len(fields) == 5 and fields[0].isdigit() and fields[1].isdigit():
            found[fields[3]] = Entry(int(fields[0]), int(fields[1]), f"{fields[2]} {fields[4]}")
    commands: dict[Entry, str] = {}
    for output, entry in found.items():
        commands.setdefault(entry, output)
    return {output: entry for entry, output in commands.items()}

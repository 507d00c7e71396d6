"""Runs the steps of one or several builds in order; the step that compiles shows the time that is left."""

import resource
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import ninja
from .compiling import compiled
from .durations import expected
from .record import Record, write
from .remaining import Remaining

INTERRUPTED = 130  # as shells count: 128 and the signal's number


@dataclass(frozen=True)
class Build:
    """A build folder, the commands that prepare it (generate, configure), and how many compilers run at a time."""

    folder: Path
    prepare: Sequence[Sequence[str]]
    jobs: int


def run(builds: Sequence[Build], root: Path, environment: Mapping[str, str]) -> int:
    """Runs them one after another; the exit code is that of the first step that failed, 130 after Ctrl-C.

    What each build compiled is recorded in build/times below `root`.
    """
    stopped = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _run(builds, root, environment)
    except KeyboardInterrupt:
        print("interrupted; the next build goes on from here", file=sys.stderr)
        return INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, stopped)


def _run(builds: Sequence[Build], root: Path, environment: Mapping[str, str]) -> int:
    remaining = Remaining(max((build.jobs for build in builds), default=1))
    for index, build in enumerate(builds):
        code = _build(build, root, environment, remaining, builds[index + 1 :])
        if code != 0:
            return code
    return 0


def _build(
    build: Build, root: Path, environment: Mapping[str, str], remaining: Remaining, later: Sequence[Build]
) -> int:
    began, clock, used = time.time(), time.monotonic(), _processor_seconds()
    before = ninja.log(build.folder)
    code = 0
    for command in build.prepare:
        code = code or subprocess.run(command, cwd=root, env=environment, check=False).returncode
    try:
        return code or _compile(build, root, environment, remaining, later)
    finally:
        wall, processor = time.monotonic() - clock, _processor_seconds() - used
        write(Record.of(build.folder, root, before, began, wall, processor), root)


def _compile(
    build: Build, root: Path, environment: Mapping[str, str], remaining: Remaining, later: Sequence[Build]
) -> int:
    program = ninja.program(build.folder)
    if program is None:
        command = ["cmake", "--build", str(build.folder), "--parallel", str(build.jobs)]
        return subprocess.run(command, cwd=root, env=environment, check=False).returncode
    # What the later ones will make is known best now: the generator has run.
    after = sum(sum(expected(other.folder, root).values()) for other in later)
    remaining.begin(expected(build.folder, root), after, time.monotonic())
    command = [program, "-j", str(build.jobs)]
    return compiled(command, build.folder, environment, remaining, ninja.sources(build.folder, root))


def _processor_seconds() -> float:
    """What the ended processes that this one started have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

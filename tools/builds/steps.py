"""Runs the steps of one or several builds, one after another or at once; those that compile show the time left."""

import resource
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event

from . import ninja
from .compiling import compiled
from .durations import expected
from .record import Record, write
from .remaining import Remaining

INTERRUPTED = 130  # as shells count: 128 and the signal's number


@dataclass(frozen=True)
class Build:
    """A build folder, the commands that prepare it (generate, configure), and how many compilers run at a time.

    The commands run at the same time: CMake has looked for its compilers when it waits for the generator.
    """

    folder: Path
    prepare: Sequence[Sequence[str]]
    jobs: int
    is_recorded: bool = True


def run(builds: Sequence[Build], root: Path, environment: Mapping[str, str], at_once: int = 1) -> int:
    """Runs them one after another, the first `at_once` at the same time.

    The exit code is that of the first step that failed, 130 after Ctrl-C. What each build compiled is recorded in
    build/times below `root`.
    """
    stopped = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _run_at_once(builds[:at_once], root, environment) or _run(builds[at_once:], root, environment)
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


def _run_at_once(builds: Sequence[Build], root: Path, environment: Mapping[str, str]) -> int:
    if len(builds) < 2:
        return _run(builds, root, environment)
    stop = Event()

    def compile_alone(build: Build) -> int:
        code = _prepare(build, root, environment, stop)
        if code != 0 or stop.is_set():
            stop.set()  # all are made from the same files
            return code
        return _build(replace(build, prepare=()), root, environment, Remaining(build.jobs), (), stop)

    with ThreadPoolExecutor(len(builds)) as pool:
        running = [pool.submit(compile_alone, build) for build in builds]
        try:
            codes = [each.result() for each in running]
        except KeyboardInterrupt:
            stop.set()  # and the pool waits for both
            raise
    return next((code for code in codes if code != 0), 0)


def _prepare(build: Build, root: Path, environment: Mapping[str, str], stop: Event | None = None) -> int:
    """The exit code of the first command that failed, at which the others are ended, as they are once `stop` is set."""
    running = [subprocess.Popen(command, cwd=root, env=environment) for command in build.prepare]
    try:
        while any(each.poll() is None for each in running) and not any(each.poll() for each in running):
            if stop is not None and stop.is_set():
                return 0
            time.sleep(0.05)
        return next((each.returncode for each in running if each.returncode), 0)
    finally:
        for each in running:
            each.terminate()
            each.wait()


def _build(
    build: Build,
    root: Path,
    environment: Mapping[str, str],
    remaining: Remaining,
    later: Sequence[Build],
    stop: Event | None = None,
) -> int:
    """`stop` is that of a build beside others."""
    began, clock, used = time.time(), time.monotonic(), _processor_seconds()
    before = ninja.log(build.folder)
    code = _prepare(build, root, environment)
    try:
        return code or _compile(build, root, environment, remaining, later, stop)
    finally:
        wall, processor = time.monotonic() - clock, _processor_seconds() - used
        if build.is_recorded:
            write(Record.of(build.folder, root, before, began, wall, processor), root)


def _compile(
    build: Build,
    root: Path,
    environment: Mapping[str, str],
    remaining: Remaining,
    later: Sequence[Build],
    stop: Event | None,
) -> int:
    program = ninja.program(build.folder)
    if program is None:
        command = ["cmake", "--build", str(build.folder), "--parallel", str(build.jobs)]
        return subprocess.run(command, cwd=root, env=environment, check=False).returncode
    # What the later ones will make is known best now: the generator has run.
    after = sum(sum(expected(other.folder, root).values()) for other in later)
    remaining.begin(expected(build.folder, root), after, time.monotonic())
    command = [program, "-j", str(build.jobs)]
    return compiled(command, build.folder, environment, remaining, ninja.sources(build.folder, root), stop)


def _processor_seconds() -> float:
    """What the ended processes that this one started have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

"""Runs ninja: its status lines become the display, everything else passes through."""

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import IO

from . import ninja
from .display import Display, displayed
from .remaining import Remaining


def compiled(
    command: list[str],
    folder: Path,
    environment: Mapping[str, str],
    remaining: Remaining,
    names: Mapping[str, str],
    stop: Event | None = None,
) -> int:
    """Ninja's exit code; `remaining` knows the units that it will make, `names` are the sources of objects.

    After Ctrl-C it waits until ninja has stopped the compilers and removed what is half written, and raises
    KeyboardInterrupt. A build beside others, in a thread, shows plain lines, and ends so once `stop` is set.
    """
    is_live = sys.stdout.isatty() and stop is None
    told = subprocess.STDOUT if is_live else None  # what ninja says itself must not cut the live line
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**environment, "NINJA_STATUS": ninja.STATUS},
        stdout=subprocess.PIPE,
        stderr=told,
        process_group=0,  # signals reach it through us, once, whoever sent them
    )
    assert process.stdout is not None
    interrupted = False
    with displayed(folder.name, remaining, is_live) as display:
        display.show(0, remaining.units, "")
        reader = _Reader(process.stdout, display, remaining, names)
        while True:
            try:
                if reader.read(stop):
                    _interrupt(process)
                    reader.read(None)
                code = process.wait()
                break
            except KeyboardInterrupt:
                interrupted = True
                _interrupt(process)
    if interrupted:
        raise KeyboardInterrupt
    return code


def _interrupt(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)


class _Reader:
    """Reads what ninja prints, by lines."""

    def __init__(self, stream: IO[bytes], display: Display, remaining: Remaining, names: Mapping[str, str]) -> None:
        self._descriptor = stream.fileno()
        self._display = display
        self._remaining = remaining
        self._names = names
        self._rest = b""
        self._done = 0  # units of the plan; ninja also counts CMake's look for new files

    def read(self, stop: Event | None = None) -> bool:
        """Reads to the end, or until `stop` is set, which gives True; ticks the display at least twice a second."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._descriptor, selectors.EVENT_READ)
            while stop is None or not stop.is_set():
                if selector.select(timeout=0.5):
                    chunk = os.read(self._descriptor, 1 << 16)
                    if not chunk:
                        break
                    self._take(chunk)
                self._display.tick()
            else:
                return True
        if self._rest:
            self._line(self._rest)
            self._rest = b""
        return False

    def _take(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._line(line + b"\n")

    def _line(self, line: bytes) -> None:
        found = ninja.finished(line.decode(errors="replace"))
        if found is None:
            self._display.write(line)
        elif self._remaining.finish(found.output, found.total - found.done, time.monotonic()):
            self._done += 1
            left = min(self._remaining.units, found.total - found.done)
            self._display.show(self._done, self._done + left, self._names.get(found.output, found.output))

"""Tells on the error stream how far a run is: a bar on a terminal, else a line now and then."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from diopigen.verbosity import console, quiet

_PAUSE = 10.0  # seconds between lines


class Meter:
    """How many of `total` things are done, how fast, and how many of them are bad."""

    def __init__(self, total: int, what: str) -> None:
        self._total = total
        self._what = what
        self._begin = self._told = time.monotonic()
        self._done = self._bad = 0
        on_terminal = sys.stderr.isatty() and not quiet()
        self._lines = not on_terminal and not quiet()
        self._bar = _bar() if on_terminal else None
        self._task = self._bar.add_task(what, total=total, bad="", rate="") if self._bar else None

    def advance(self, count: int = 1, bad: int = 0) -> None:
        """`count` more are done, `bad` of them badly."""
        self._done += count
        self._bad += bad
        if self._bar is not None and self._task is not None:
            told = f"[red]{self._bad} bad" if self._bad else ""
            self._bar.update(self._task, advance=count, bad=told, rate=f"{self._rate():.0f}/s")
        elif self._lines and time.monotonic() - self._told >= _PAUSE:
            self._told = time.monotonic()
            print(self.line(), file=sys.stderr, flush=True)

    def line(self) -> str:
        """e.g. "running: 4000 of 20000, 3 bad, 800/s, 20 s left"."""
        rate = self._rate()
        left = f"{(self._total - self._done) / rate:.0f} s left" if rate else "no end in sight"
        bad = f", {self._bad} bad" if self._bad else ""
        return f"{self._what}: {self._done} of {self._total}{bad}, {rate:.0f}/s, {left}"

    def _rate(self) -> float:
        return self._done / max(1e-6, time.monotonic() - self._begin)

    def start(self) -> None:
        if self._bar is not None:
            self._bar.start()

    def stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()


@contextmanager
def metered(total: int, what: str) -> Iterator[Meter]:
    """A meter while the body runs."""
    meter = Meter(total, what)
    meter.start()
    try:
        yield meter
    finally:
        meter.stop()


def _bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[bad]}"),
        TimeRemainingColumn(),
        console=console(stderr=True),
        transient=True,
    )

"""Shows how far a build is: one live line on a terminal, else a plain line now and then."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column

from .remaining import Remaining, clock

_PAUSE = 20.0  # seconds between plain lines


class Display(Protocol):
    """Where the state of a build and what its compilers say are shown."""

    def show(self, done: int, total: int, unit: str) -> None:
        """So many units are done; `unit` was the last."""

    def tick(self) -> None:
        """Time has passed."""

    def write(self, output: bytes) -> None:
        """Passes on what a compiler said."""


class Plain:
    """e.g. "[ 57/211] 3:10 left, droplet: runtime_cpp/kernels/normalization/softmax.cpp", every 20 seconds."""

    def __init__(self, name: str, remaining: Remaining) -> None:
        self._name = name
        self._remaining = remaining
        self._told = time.monotonic()
        self._state = (0, 0, "")

    def show(self, done: int, total: int, unit: str) -> None:
        self._state = (done, total, unit)
        self.tick()

    def tick(self) -> None:
        now = time.monotonic()
        if self._state[1] and now - self._told >= _PAUSE:
            self._told = now
            print(self.line(now), flush=True)

    def line(self, now: float) -> str:
        done, total, unit = self._state
        return (
            f"[{done:{len(str(total))}}/{total}] {clock(self._remaining.left(now))} left, {self._name}: {unit or '...'}"
        )

    def write(self, output: bytes) -> None:
        sys.stdout.flush()
        sys.stdout.buffer.write(output)
        sys.stdout.buffer.flush()


class Live:
    """A bar by work done, units, the time that has passed and the time left, in one line."""

    def __init__(self, name: str, remaining: Remaining, progress: Progress) -> None:
        self._remaining = remaining
        self._progress = progress
        self._task = progress.add_task(name, total=None, units="", left="", unit="")

    def show(self, done: int, total: int, unit: str) -> None:
        work = self._remaining.work_done
        whole = work + self._remaining.work_left
        self._progress.update(self._task, completed=work, total=whole, units=f"{done}/{total}", unit=unit)
        self.tick()

    def tick(self) -> None:
        self._progress.update(self._task, left=f"{clock(self._remaining.left(time.monotonic()))} left")

    def write(self, output: bytes) -> None:
        self._progress.console.out(output.decode(errors="replace"), end="", highlight=False)


@contextmanager
def displayed(name: str, remaining: Remaining, is_live: bool) -> Iterator[Display]:
    """A live line on a terminal, or plain ones, while the body runs."""
    if not is_live:
        yield Plain(name, remaining)
        return
    with Progress(*_columns(), console=Console(), transient=True) as progress:
        yield Live(name, remaining, progress)


def _columns() -> tuple[TextColumn | BarColumn | TimeElapsedColumn, ...]:
    unit = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    return (
        TextColumn("{task.description}"),
        BarColumn(bar_width=16),
        TextColumn("{task.fields[units]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.fields[unit]}", table_column=unit, markup=False),
    )

"""Rows of what a process uses, one for each interval, until it ends."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from op_tools import environment
from op_tools.monitor import device_memory
from op_tools.monitor.usage import ProcessEnded, Tree, Usage
from op_tools.results import Table, results_folder, stamp

COLUMNS = (
    "time",
    "time_str",
    "cpu_percent",
    "rss",
    "vms",
    "threads",
    "open_files",
    "processes",
    "device_memory",
)
# Waits so many seconds at most, and says whether the process has ended.
HasEnded = Callable[[float], bool]


class NoProcess(ValueError):
    """There is no process of that number."""


@dataclass(slots=True)
class Watched:
    """What was seen of one process."""

    rows: int = 0
    cpu_percent: float = 0.0  # the most
    rss: int = 0  # bytes, the most
    device_memory: int | None = None  # bytes, the most

    def add(self, usage: Usage, device: int | None) -> None:
        self.rows += 1
        self.cpu_percent = max(self.cpu_percent, usage.cpu_percent or 0.0)
        self.rss = max(self.rss, usage.rss)
        if device is not None:
            self.device_memory = max(self.device_memory or 0, device)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a process is watched."""

    interval: float  # seconds from row to row
    folder: Path  # where the table goes
    label: str  # a part of its name
    kept: int  # rows that wait to be written

    @classmethod
    def read(cls, interval: float, label: str | None) -> "Settings":
        """The environment says the rest, and the label unless it is given. Raises BadVariable."""
        return cls(
            interval=interval,
            folder=results_folder() / "process_monitor_result",
            label=environment.variable(environment.LABEL) if label is None else label,
            kept=environment.count(environment.MAX_ROWS, default=1),
        )


class Watch:
    """Writes a table of one process and its descendants. Raises NoProcess."""

    def __init__(self, process: int, settings: Settings) -> None:
        try:
            self._tree = Tree(psutil.Process(process))
        except psutil.NoSuchProcess:
            raise NoProcess(f"there is no process {process}") from None
        self._interval = settings.interval
        self._asks_device = device_memory.by_process() is not None
        vendor = device_memory.VENDOR if self._asks_device else "cpu"
        name = f"process_monitor_result_{vendor}_pid{process}_{_plain(settings.label)}_{stamp()}.csv"
        self._table = Table(settings.folder / name, COLUMNS, kept=settings.kept)
        self.path = self._table.path
        self.watched = Watched()

    def follow(self, has_ended: HasEnded) -> None:
        """Writes rows until the process ends; the first one at once. Raises OSError where they cannot be written.

        What waits to be written is written, however it ends.
        """
        begin = time.monotonic()
        try:
            while True:
                self._look()
                passed = time.monotonic() - begin
                if has_ended(self._interval - passed % self._interval):
                    return
        except ProcessEnded:
            return
        finally:
            self._table.write()

    def _look(self) -> None:
        usage = self._tree.usage()
        device = device_memory.sum_of(usage.processes) if self._asks_device else None
        self.watched.add(usage, device)
        self._table.add([_row(usage, device)])

    def has_ended(self, seconds: float) -> bool:
        """Waits so long at most, for any process, not only for a child."""
        try:
            self._tree.root.wait(seconds)
        except psutil.TimeoutExpired:
            return False
        return True


def _row(usage: Usage, device: int | None) -> tuple[object, ...]:
    now = time.time()
    return (
        f"{now:.3f}",
        time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now)),
        "" if usage.cpu_percent is None else f"{usage.cpu_percent:.1f}",
        usage.rss,
        usage.vms,
        usage.threads,
        "" if usage.open_files is None else usage.open_files,
        len(usage.processes),
        "" if device is None else device,
    )


def _plain(label: str) -> str:
    """A label as a part of a file's name."""
    return re.sub(r"[^\w.-]", "_", label)

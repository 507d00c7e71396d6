"""What a process and the processes below it use on the host, at one moment."""

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import psutil


class ProcessEnded(Exception):
    """The process is no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Sums over a process and its descendants. Memory that several of them share counts for each."""

    cpu_percent: float | None  # since the look before, 100 for each core; None at the first
    rss: int  # bytes that are in memory
    vms: int  # bytes of address space
    threads: int
    open_files: int | None  # descriptors, also of sockets and pipes; None where the system does not let us count them
    processes: tuple[int, ...]  # by number, the root first


@dataclass(frozen=True, slots=True, kw_only=True)
class _Own:
    """Of one process."""

    seconds: float  # on the CPU since it began
    rss: int
    vms: int
    threads: int
    open_files: int | None


class Tree:
    """One process with its descendants, looked at again and again."""

    def __init__(self, root: psutil.Process) -> None:
        self.root = root
        self._seconds: dict[psutil.Process, float] | None = None  # on the CPU, at the look before
        self._looked = 0.0

    def usage(self) -> Usage:
        """As it is now. Raises ProcessEnded where the root has ended."""
        now, found = time.monotonic(), dict(self._found())
        if self.root not in found:
            raise ProcessEnded(f"process {self.root.pid} has ended")
        files = [own.open_files for own in found.values()]
        return Usage(
            cpu_percent=self._percent({process: own.seconds for process, own in found.items()}, now),
            rss=sum(own.rss for own in found.values()),
            vms=sum(own.vms for own in found.values()),
            threads=sum(own.threads for own in found.values()),
            open_files=None if None in files else sum(count for count in files if count is not None),
            processes=tuple(process.pid for process in found),
        )

    def _found(self) -> Iterator[tuple[psutil.Process, _Own]]:
        """Those that live, each with its own use; one may end while it is looked at."""
        below: list[psutil.Process] = []
        with suppress(psutil.NoSuchProcess):
            below = self.root.children(recursive=True)
        for process in (self.root, *below):
            with suppress(psutil.NoSuchProcess):
                if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                    yield process, _own(process)

    def _percent(self, seconds: dict[psutil.Process, float], now: float) -> float | None:
        """What was used since the look before; a process that is new since then began after it."""
        before, began = self._seconds, self._looked
        self._seconds, self._looked = seconds, now
        if before is None or now <= began:
            return None
        used = sum(spent - before.get(process, 0.0) for process, spent in seconds.items())
        return 100 * used / (now - began)


def _own(process: psutil.Process) -> _Own:
    with process.oneshot():
        times, memory = process.cpu_times(), process.memory_info()
        return _Own(
            seconds=times.user + times.system,
            rss=memory.rss,
            vms=memory.vms,
            threads=process.num_threads(),
            open_files=_open_files(process),
        )


def _open_files(process: psutil.Process) -> int | None:
    try:
        return process.num_fds()
    except psutil.AccessDenied:  # another user's
        return None

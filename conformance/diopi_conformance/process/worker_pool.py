"""Worker processes from the outside: one session behind the other, as long as libraries load."""

import contextlib
import os
import queue
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diopi_conformance.outcome import NOT_IMPLEMENTED
from diopi_conformance.process.session import Reply, Session, also_ended

# Leaks are looked for when a worker has nothing left to do: at its exit Python has lost half of its own memory, and its
# arenas are never searched, so it does without. An undefined behaviour or a data race must end the worker to be seen.
_SANITIZER = {
    "ASAN_OPTIONS": "detect_leaks=1:leak_check_at_exit=0",
    "PYTHONMALLOC": "malloc",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
}

# What a thread gives back must be free at once, else it looks as if it were kept: glibc caches some of it per thread.
_HEAP = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}


PRELOAD = "DIOPI_WORKER_PRELOAD"  # variables of the environment: a library that workers load first,
UNDER = "DIOPI_WORKER_UNDER"  # and a command that they run under
_KILLED = 2  # processes that are killed while they load, before that is taken for the library's way
_PATIENCE = 5  # fresh processes whose first call fails, before that is taken for the library's way


class Unusable(Exception):
    """The libraries cannot be loaded at all; the text says why."""


class _Killed(Unusable):
    """The process was killed while it loaded them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Libraries:
    """What a worker loads."""

    runtime: Path  # e.g. build/droplet/lib/libdiopirt.so
    vendor: Path  # e.g. build/droplet/lib/libdiopi_impl.so


class Worker:
    """One process; when it dies, the next request gets a fresh one."""

    def __init__(self, libraries: Libraries, time_limit: float) -> None:
        self._libraries = libraries
        self._time_limit = time_limit
        self._session: Session | None = None
        self._abandoned = False
        self._answers = 0  # of the process that runs now
        self._vain = 0  # processes whose first call failed

    def ask(self, requests: list[Reply]) -> list[Reply]:
        """The replies to all requests, in order. A request that kills the worker has the way it died as its reply.

        After abandon() the replies that came before. Raises Unusable where no worker comes up.
        """
        answered: list[Reply] = []
        while len(answered) < len(requests) and not self._abandoned:
            session = self._started()
            if self._abandoned:
                break
            rest = requests[len(answered) :]
            session.feed(rest)
            answered.extend(self._collect(session, len(rest)))
            session.fed()
        return answered

    def _collect(self, session: Session, count: int) -> list[Reply]:
        found: list[Reply] = []
        while len(found) < count:
            try:
                reply = session.reply(self._time_limit)
            except queue.Empty:
                error = f"no answer in {self._time_limit:g} s{also_ended(self.stop())}"
                return [*found, ({"outcome": "timeout", "error": error}, [])]
            if reply is None and self._abandoned:
                return found
            if reply is None:
                return [*found, ({"outcome": "crash", "error": session.death()}, [])]
            found.append(reply)
            if self._tainted(reply[0]):
                self.stop()
                return found
        return found

    def _tainted(self, head: dict[str, Any]) -> bool:
        """Whether the process may answer wrongly from now on: errors of a device stick to it.

        Where even the first call of fresh processes fails, a fresh one does not help, and none is started.
        """
        first, self._answers = self._answers == 0, self._answers + 1
        if head.get("synchronized") is False:
            return True
        if head.get("status", 0) in (0, *NOT_IMPLEMENTED):
            return False
        self._vain += 1 if first else 0
        return not first and self._vain < _PATIENCE

    def _started(self) -> Session:
        """The process that runs, or a new one that has loaded the libraries; one that was killed is replaced."""
        if self._session is not None and self._session.runs():
            return self._session
        for _ in range(_KILLED):
            with contextlib.suppress(_Killed):
                return self._loaded()
        return self._loaded()

    def _loaded(self) -> Session:
        """A new process that has loaded the libraries. Raises Unusable; _Killed where others may have killed it."""
        self.stop()
        self._answers = 0
        command = [sys.executable, "-m", "diopi_conformance.process.worker"]
        libraries = [str(self._libraries.runtime), str(self._libraries.vendor)]
        under = shlex.split(os.environ.get(UNDER, ""))
        session = self._session = Session([*command, *libraries], under=under, environment=_environment())
        if self._abandoned:  # in the meantime
            session.tell_to_end()
        try:
            reply = session.reply(max(60.0, self._time_limit))
        except queue.Empty:
            self.stop()
            raise Unusable("a worker did not come up in a minute") from None
        if self._abandoned:
            return session
        if reply is None:
            error = f"loading the library ended the worker: {session.death()}"
            raise (_Killed if session.was_killed() else Unusable)(error)
        if reply[0]["outcome"] != "ready":
            raise Unusable(reply[0]["error"])
        return session

    def abandon(self) -> None:
        """From another thread: end the process in the middle of a call, and start none again."""
        self._abandoned = True
        if (session := self._session) is not None:
            session.tell_to_end()

    def finish(self) -> str:
        """End a process that has nothing left to do; what is wrong with its end, empty where that is nothing.

        e.g. what a leak sanitizer says, or that the library has left processes behind
        """
        session = self._session
        if session is None or not session.runs() or self._abandoned:
            self.stop()
            return ""
        try:
            session.close()
            reply = session.reply(max(60.0, self._time_limit))
        except (OSError, queue.Empty):
            return "the worker did not end" + also_ended(self.stop())
        if reply is None:
            return f"looking for leaks: {session.death()}"
        session.wait(max(10.0, self._time_limit))  # what a library does at its end, it does
        if session.runs():
            return "the worker did not end" + also_ended(self.stop())
        told, left = str(reply[0]["leaks"]), also_ended(self.stop())
        return f"{told}the worker ended{left}" if left else told

    def stop(self) -> int:
        """End the process; how many processes that it had started were ended, too. Safe to call twice."""
        session, self._session = self._session, None
        return session.end() if session is not None else 0


def _environment() -> dict[str, str]:
    """The worker's: this package in reach, and a sanitizer's runtime in front where one is asked for."""
    package = str(Path(__file__).parents[2])
    path = os.pathsep.join(p for p in (package, os.environ.get("PYTHONPATH", "")) if p)
    preload = os.environ.get(PRELOAD)
    return {**_HEAP, **(_SANITIZER if preload else {}), **os.environ, "PYTHONPATH": path, **_preloaded(preload)}


def _preloaded(library: str | None) -> dict[str, str]:
    return {"LD_PRELOAD": library} if library else {}

"""Worker processes from the outside: starting them, waiting with a limit, and telling how they died."""

import os
import queue
import shlex
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diopi_conformance.outcome import NOT_IMPLEMENTED
from diopi_conformance.process import wire
from diopi_conformance.process.last_words import LastWords

Reply = tuple[dict[str, Any], list[bytes]]


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
_PATIENCE = 5  # fresh processes whose first call fails, before that is taken for the library's way


class Unusable(Exception):
    """The libraries cannot be loaded at all; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Libraries:
    """What a worker loads."""

    runtime: Path  # ex) build/droplet/lib/libdiopirt.so
    vendor: Path  # ex) build/droplet/lib/libdiopi_impl.so


class Worker:
    """One process; when it dies, the next request gets a fresh one."""

    def __init__(self, libraries: Libraries, time_limit: float) -> None:
        self._libraries = libraries
        self._time_limit = time_limit
        self._process: subprocess.Popen[bytes] | None = None
        self._replies: queue.Queue[Reply | None] = queue.Queue()
        self._abandoned = False
        self._answers = 0  # of the process that runs now
        self._vain = 0  # processes whose first call failed
        self._said: LastWords | None = None

    def ask(self, requests: list[Reply]) -> list[Reply]:
        """The replies to all requests, in order. A request that kills the worker has the way it died as its reply.

        After abandon() the replies that came before. Raises Unusable where no worker comes up.
        """
        answered: list[Reply] = []
        while len(answered) < len(requests) and not self._abandoned:
            self._start()
            if self._abandoned:
                break
            rest = requests[len(answered) :]
            feeder = threading.Thread(target=self._feed, args=(rest,), daemon=True)
            feeder.start()
            answered.extend(self._collect(len(rest)))
            feeder.join()
        return answered

    def _feed(self, requests: list[Reply]) -> None:
        process = self._process
        assert process is not None and process.stdin is not None
        try:
            for head, blobs in requests:
                wire.send(process.stdin, head, blobs)
        except (BrokenPipeError, OSError, ValueError):
            return  # the worker died; its replies tell the rest

    def _collect(self, count: int) -> list[Reply]:
        found: list[Reply] = []
        while len(found) < count:
            try:
                reply = self._replies.get(timeout=self._time_limit)
            except queue.Empty:
                self.stop()
                return [*found, ({"outcome": "timeout", "error": f"no answer in {self._time_limit:g} s"}, [])]
            if reply is None and self._abandoned:
                return found
            if reply is None:
                return [*found, ({"outcome": "crash", "error": self._death()}, [])]
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

    def _start(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        self.stop()
        self._replies = queue.Queue()
        self._answers = 0
        under = shlex.split(os.environ.get(UNDER, ""))
        libraries = [str(self._libraries.runtime), str(self._libraries.vendor)]
        uncounted = ["--uncounted"] if under else []
        self._process = subprocess.Popen(
            [*under, sys.executable, "-m", "diopi_conformance.process.worker", *libraries, *uncounted],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
            start_new_session=True,  # an interrupt is the runner's to handle
        )
        if self._abandoned:  # in the meantime
            self._process.kill()
        threading.Thread(target=_listen, args=(self._process, self._replies), daemon=True).start()
        self._said = LastWords(self._process)
        try:
            reply = self._replies.get(timeout=max(60.0, self._time_limit))
        except queue.Empty:
            self.stop()
            raise Unusable("a worker did not come up in a minute") from None
        if self._abandoned:
            return
        if reply is None:
            raise Unusable(f"loading the library ended the worker: {self._death()}")
        if reply[0]["outcome"] != "ready":
            raise Unusable(reply[0]["error"])

    def _death(self) -> str:
        assert self._process is not None
        code = self._process.wait()
        if code >= 0:
            found = self._said.summary() if self._said is not None else ""
            return f"the process was ended with code {code}" + (f": {found}" if found else "")
        try:
            death = f"killed by {signal.Signals(-code).name}"
        except ValueError:
            death = f"killed by signal {-code}"
        thrown = self._said.exception() if self._said is not None else ""
        return f"{death}: {thrown}" if thrown else death

    def abandon(self) -> None:
        """From another thread: end the process in the middle of a call, and start none again."""
        self._abandoned = True
        process = self._process
        if process is not None:
            process.kill()

    def finish(self) -> str:
        """End a process that has nothing left to do; what its leak sanitizer says, empty where that is nothing."""
        process = self._process
        if process is None or process.stdin is None or process.poll() is not None or self._abandoned:
            self.stop()
            return ""
        try:
            process.stdin.close()
            reply = self._replies.get(timeout=max(60.0, self._time_limit))
            process.wait(timeout=max(10.0, self._time_limit))  # what a library does at its end, it does
        except (OSError, queue.Empty, subprocess.TimeoutExpired):
            return "the worker did not end"
        else:
            return str(reply[0]["leaks"]) if reply is not None else f"looking for leaks: {self._death()}"
        finally:
            self.stop()

    def stop(self) -> None:
        """End the process; safe to call twice."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        if self._said is not None:
            self._said.all()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    continue


def _environment() -> dict[str, str]:
    """The worker's: this package in reach, and a sanitizer's runtime in front where one is asked for."""
    package = str(Path(__file__).parents[2])
    path = os.pathsep.join(p for p in (package, os.environ.get("PYTHONPATH", "")) if p)
    preload = os.environ.get(PRELOAD)
    return {**_HEAP, **(_SANITIZER if preload else {}), **os.environ, "PYTHONPATH": path, **_preloaded(preload)}


def _preloaded(library: str | None) -> dict[str, str]:
    return {"LD_PRELOAD": library} if library else {}


def _listen(process: subprocess.Popen[bytes], replies: "queue.Queue[Reply | None]") -> None:
    assert process.stdout is not None
    try:
        while True:
            replies.put(wire.receive(process.stdout))
    except (wire.Closed, OSError, ValueError):
        replies.put(None)

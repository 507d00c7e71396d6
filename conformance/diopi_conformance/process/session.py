"""One worker process from its start to its end: what it is asked, what it answers, and how it ended.

Nothing here waits without a limit, whatever a vendor's function does: a process that it left behind may hold all pipes.
"""

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from diopi_conformance.process import wire
from diopi_conformance.process.reaper import WorkerExit
from diopi_conformance.process.stderr_tail import StderrTail
from diopi_conformance.process.worker import MUTE, UNDER_A_TOOL

Reply = tuple[dict[str, Any], list[bytes]]

_PATIENCE = 5.0  # seconds for a process that was told to end, and for who waits for its pipes


class Session:
    """A process that runs until it is ended, or ends itself."""

    def __init__(self, command: Sequence[str], *, under: Sequence[str], environment: Mapping[str, str]) -> None:
        """`under` is the command of a tool that it runs under."""
        self._kept = not under
        self._asked_to_end = False
        self._garbled = False
        self._seen: WorkerExit | None = None  # by the keeper
        self._report, report = os.pipe()
        self._process = subprocess.Popen(
            [*under, *command, str(report) if self._kept else UNDER_A_TOOL],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(report,) if self._kept else (),
            env=environment,
            start_new_session=True,  # an interrupt is the runner's to handle
        )
        os.close(report)
        self._feeder: threading.Thread | None = None
        self._replies: queue.Queue[Reply | None] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self._said = StderrTail(self._process)

    def runs(self) -> bool:
        return self._process.poll() is None

    def feed(self, requests: Sequence[Reply]) -> None:
        """Ask on a thread: what is answered meanwhile must be read."""
        self._feeder = threading.Thread(target=self._feed, args=(requests,), daemon=True)
        self._feeder.start()

    def fed(self) -> None:
        """Wait until everything is asked, or the process has ended."""
        if self._feeder is not None:
            self._feeder.join(_PATIENCE)

    def reply(self, time_limit: float) -> Reply | None:
        """The next one; None at the end of the process. Raises queue.Empty."""
        return self._replies.get(timeout=time_limit)

    def close(self) -> None:
        """There is nothing more to ask."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def tell_to_end(self) -> None:
        """From any thread, without waiting."""
        if not self.runs():
            return
        self._asked_to_end = True
        if self._kept:
            self._process.terminate()
        else:
            self._kill()

    def end(self) -> int:
        """End the process and what it has started; how many processes that were. Safe to call twice."""
        self.tell_to_end()
        ended = self._ended()
        for stream, thread in ((self._process.stdin, self._feeder), (self._process.stdout, self._listener)):
            if thread is not None:
                thread.join(_PATIENCE)
            if stream is not None and not (
                thread is not None and thread.is_alive()
            ):  # else it would wait for the thread
                with contextlib.suppress(OSError):
                    stream.close()
        self._said.all()
        return ended.left if ended is not None else 0

    def wait(self, time_limit: float) -> None:
        """Until the process has ended by itself, or for so many seconds."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(time_limit)

    def was_killed(self) -> bool:
        """Whether the process was killed from outside, e.g. by a system out of memory."""
        ended = self._ended()
        return (self._process.returncode if ended is None else ended.code) in (-signal.SIGKILL, -signal.SIGTERM)

    def death(self) -> str:
        """How the process ended that was not told to."""
        if self._garbled:
            self.end()
            return "its answer cannot be read: the function wrote to the pipe of the answers"
        self.wait(_PATIENCE)
        if self.runs():
            self.end()
            return self._told(MUTE)
        ended = self._ended()
        if ended is None and self._kept:
            return f"the function ended the parent of its process: {killed(-self._process.returncode)}"
        if ended is not None and ended.asked and not self._asked_to_end:
            return f"the function ended the parent of its process: {killed(signal.SIGTERM)}"
        code = self._process.returncode if ended is None else ended.code
        return self._told(code) + also_ended(ended.left if ended is not None else 0)

    def _told(self, code: int) -> str:
        if code == MUTE:
            return "the function closed the descriptors of its process"
        if code >= 0:
            found = self._said.summary()
            return f"the process was ended with code {code}" + (f": {found}" if found else "")
        thrown = self._said.exception()
        return f"{killed(-code)}: {thrown}" if thrown else killed(-code)

    def _ended(self) -> WorkerExit | None:
        """What the keeper says, once it has ended; None where it was killed, or there is none."""
        self.wait(_PATIENCE)
        if self.runs():
            self._kill()
            self.wait(_PATIENCE)
        if self._report >= 0:
            os.set_blocking(self._report, False)
            with contextlib.suppress(OSError, ValueError, TypeError):
                self._seen = WorkerExit(**json.loads(os.read(self._report, 4096)))
            os.close(self._report)
            self._report = -1
        return self._seen

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _feed(self, requests: Sequence[Reply]) -> None:
        assert self._process.stdin is not None
        try:
            for head, blobs in requests:
                wire.send(self._process.stdin, head, blobs)
        except (OSError, ValueError):
            return  # the worker died; its replies tell the rest

    def _listen(self) -> None:
        assert self._process.stdout is not None
        try:
            while True:
                self._replies.put(wire.receive(self._process.stdout))
        except (wire.Closed, OSError, ValueError):
            self._replies.put(None)
        except (wire.MalformedMessage, MemoryError):
            self._garbled = True
            self._replies.put(None)


def also_ended(count: int) -> str:
    """e.g. "; 2 processes that it had started were ended, too"."""
    if count == 0:
        return ""
    processes, were = ("process", "was") if count == 1 else ("processes", "were")
    return f"; {count} {processes} that it had started {were} ended, too"


def killed(number: int) -> str:
    """e.g. "killed by SIGSEGV"."""
    try:
        return f"killed by {signal.Signals(number).name}"
    except ValueError:
        return f"killed by signal {number}"

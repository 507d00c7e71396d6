"""The parent of a worker: it ends what the worker has started, and functions that end their parent end it alone."""

import contextlib
import ctypes
import json
import os
import resource
import signal
import time
from dataclasses import asdict, dataclass

from diopi_conformance.process.parent import die_with_parent

_PR_SET_CHILD_SUBREAPER = 36
_HEARD = (signal.SIGCHLD, signal.SIGTERM)
_PATIENCE = 3.0  # seconds for killed processes to end


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerExit:
    """How a worker ended, as its keeper saw it."""

    code: int  # the exit code, negative for a signal
    asked: bool  # the keeper was asked to end it
    left: int  # processes that it had started, which were still there


def keep(report: int | None = None) -> None:
    """Forks: returns in the child, the worker; the parent keeps it, never returns, and ends as the worker does.

    To end the worker, end the keeper with SIGTERM. It writes an Ended as JSON to the descriptor `report`.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
    libc = ctypes.CDLL(None)
    if hasattr(libc, "prctl"):
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)  # orphans become the keeper's
    keeper, worker = os.getpid(), os.fork()
    if worker != 0:
        die_with_parent(signal.SIGTERM)
        ended = _watched(worker)
        if report is not None:
            with contextlib.suppress(OSError):
                os.write(report, json.dumps(asdict(ended)).encode())
        _end_like(ended.code)
    os.setsid()  # a function that kills its group kills nobody else
    die_with_parent()
    if os.getppid() != keeper:
        os._exit(1)
    if report is not None:
        os.close(report)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEARD)


def children(pid: int) -> list[int]:
    """Processes whose parent is the first thread of a process; none where the system does not tell."""
    try:
        descriptor = os.open(f"/proc/{pid}/task/{pid}/children", os.O_RDONLY)
    except OSError:
        return []
    try:
        return [int(child) for child in os.read(descriptor, 65536).split()]
    finally:
        os.close(descriptor)


def _watched(worker: int) -> WorkerExit:
    for stream in (0, 1):
        os.close(stream)  # the worker's: whoever listens there hears it end
    asked, code = False, None
    while code is None and not asked:
        asked = signal.sigwait(_HEARD) == signal.SIGTERM
        code = _reaped().get(worker)
    if code is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
    ended = _end_children()
    if code is None:
        code = ended.pop(worker, -signal.SIGKILL)
    return WorkerExit(code=code, asked=asked, left=sum(one == -signal.SIGKILL for one in ended.values()))


def _reaped() -> dict[int, int]:
    """Children that have ended: exit codes by process."""
    found: dict[int, int] = {}
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0] != 0:
            found[ended[0]] = os.waitstatus_to_exitcode(ended[1])
    return found


def _end_children() -> dict[int, int]:
    """Kills children, and what becomes one by that, until there are none; exit codes by process."""
    found: dict[int, int] = {}
    deadline = time.monotonic() + _PATIENCE
    _reaped()
    while (running := children(os.getpid())) and time.monotonic() < deadline:
        for child in running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        time.sleep(0.001)
        found |= _reaped()
    return found


def _end_like(code: int) -> None:
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the worker has left its own
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (-code,))
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 1)

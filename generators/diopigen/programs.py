"""Starts the three programs: Ctrl-C ends them as docs/exit-codes.md says while modules load, which may take seconds."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

INTERRUPTED = 130
INTERRUPTED_LINE = "interrupted; no file is half-written"


def diopigen() -> None:
    """The command `diopigen`."""
    _run("diopigen.cli")


def diopi_conformance() -> None:
    """The command `diopi-conformance`."""
    _run("diopi_conformance.cli")


def op_tools() -> None:
    """The command `op-tools`."""
    _run("op_tools.cli", prog_name="op-tools")


def _run(module: str, **extra: str) -> None:
    with loading():
        main = import_module(module).main
    main(**extra)


@contextmanager
def loading() -> Iterator[None]:
    """Meanwhile Ctrl-C ends the process with one line, unless it is ignored, as in the background of a shell."""
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)
    yield
    signal.signal(signal.SIGINT, usual)


def _interrupted(*_: object) -> None:
    """No exception: a module that is half loaded may catch it, or become another one."""
    os.write(2, f"{INTERRUPTED_LINE}\n".encode())
    os._exit(INTERRUPTED)

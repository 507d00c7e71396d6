"""Starts the three programs: Ctrl-C ends them as docs/exit-codes.md says while modules load, which may take seconds."""

import os
import signal
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
    _run("op_tools.cli")


def _run(module: str) -> None:
    usual = signal.getsignal(signal.SIGINT)
    if usual is not signal.default_int_handler:  # it is ignored, as in the background of a shell
        import_module(module).main()
        return
    signal.signal(signal.SIGINT, _interrupted)
    main = import_module(module).main
    signal.signal(signal.SIGINT, usual)
    main()


def _interrupted(*_: object) -> None:
    """No exception: a module that is half loaded may catch it, or become another one."""
    os.write(2, f"{INTERRUPTED_LINE}\n".encode())
    os._exit(INTERRUPTED)

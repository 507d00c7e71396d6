"""Starts the three programs: Ctrl-C ends them as docs/exit-codes.md says while modules load, which may take seconds."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

PROGRAMS = {"diopigen": "diopigen.cli", "diopi-conformance": "diopi_conformance.cli", "op-tools": "op_tools.cli"}
OURS = ("diopigen", "diopi_conformance", "op_tools", "dicp", "torch_dipu")
UNFIT = 2  # the use is wrong, or the machine lacks something
EXTRAS = ("conformance", "op-tools")  # of the package: what a program needs besides
INTERRUPTED = 130
INTERRUPTED_LINE = "interrupted; no file is half-written"


def diopigen() -> None:
    """The command `diopigen`."""
    _run("diopigen")


def diopi_conformance() -> None:
    """The command `diopi-conformance`."""
    _run("diopi-conformance")


def op_tools() -> None:
    """The command `op-tools`."""
    _run("op-tools", prog_name="op-tools")


def _run(program: str, **extra: str) -> None:
    module = PROGRAMS[program]
    with loading():
        try:
            main = import_module(module).main
        except ModuleNotFoundError as error:
            if (error.name or module.partition(".")[0]).partition(".")[0] in OURS:
                raise
            os.write(2, f"{missing(str(error.name), Path(sys.argv[0]).name)}\n".encode())
            sys.exit(UNFIT)
    main(**extra)


def missing(module: str, program: str) -> str:
    """What is said of a module that is not installed: e.g. "the Python module 'rich' is missing: run '...'"."""
    brought = (Path(__file__).parent / "share").is_dir()  # by an installed package
    extra = next((f"[{name}]" for name in EXTRAS if program.endswith(name)), "")
    wanted = f'"diopigen{extra}"' if brought else "-e ."
    package = module.partition(".")[0]
    return f"the Python module '{package}' is missing: run '{sys.executable} -m pip install {wanted}'"


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

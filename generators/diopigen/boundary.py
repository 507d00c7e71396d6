"""Where exceptions end: each becomes a line and an exit code, for every command there is (docs/exit-codes.md)."""

import errno
import os
import shlex
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Never

import click

from diopigen.programs import INTERRUPTED, INTERRUPTED_LINE, OURS, UNFIT, missing

FINDINGS, UNUSABLE, FAULT, CLOSED = 1, UNFIT, 70, 141

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class Program(click.Group):
    """A command line whose commands end with these codes alone, and never with a traceback."""

    refusals: tuple[type[Exception], ...] = ()  # of the program's own: the text says what is wrong with its use

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> Never:
        """Runs the command line, and ends the process."""
        name = prog_name or Path(sys.argv[0]).name
        if isinstance(sys.stdout, TextIOWrapper):  # a name of a file or a doc may be more than it can encode
            sys.stdout.reconfigure(errors="backslashreplace")
        code: Any
        try:
            try:
                code = super().main(args, name, **{**extra, "standalone_mode": False})
            except SystemExit as ended:
                code = ended.code
            if sys.stdout is not None:
                sys.stdout.flush()
        except BaseException as error:
            code, line = _ending(error, name, self.refusals)
            if line is not None:
                with suppress(OSError):
                    click.echo(line, err=True)
            _drop_output()
        sys.exit(code)

    def make_context(self, *words: Any, **extra: Any) -> click.Context:
        with _kept_from_click():
            return super().make_context(*words, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _kept_from_click():
            return super().invoke(ctx)


class _Closed(Exception):
    """Standard output is a pipe that nobody reads."""


@contextmanager
def _kept_from_click() -> Iterator[None]:
    """Click would end with 1 where a pipe is closed."""
    try:
        yield
    except BrokenPipeError as error:
        raise _Closed from error


def _ending(error: BaseException, name: str, refusals: tuple[type[Exception], ...]) -> tuple[int, str | None]:
    """The exit code for `error`, and what standard error says."""
    match error:
        case click.ClickException():
            with suppress(OSError):
                error.show()
            return UNUSABLE, None
        case click.Abort() | KeyboardInterrupt():
            return INTERRUPTED, INTERRUPTED_LINE
        case _Closed() | BrokenPipeError():
            return CLOSED, None
        case OSError():
            return UNUSABLE, f"{name}: {_of_machine(error)}"
        case MemoryError():
            return UNUSABLE, f"{name}: the machine has no memory left"
        case ModuleNotFoundError() if error.name is not None and error.name.partition(".")[0] not in OURS:
            return UNUSABLE, missing(error.name, name)
        case _ if isinstance(error, refusals):
            return UNUSABLE, f"{name}: {error}"
        case _:
            return FAULT, _fault(error, name)


def _of_machine(error: OSError) -> str:
    """e.g. "/x/plan.json: Permission denied" """
    if type(error).__str__ is not OSError.__str__:
        return str(error)  # a sentence of ours
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return f"standard output cannot be written: {error.strerror}" if error.errno in _FULL else str(error)


def _fault(error: BaseException, name: str) -> str:
    """What went wrong, where the traceback is, and what to report, in one line."""
    what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    text = f"{shlex.join([name, *sys.argv[1:]])}\n{''.join(traceback.format_exception(error))}"
    try:
        handle, path = tempfile.mkstemp(prefix=f"{name}-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        kept = f"the traceback is in {path}"
    except OSError:
        kept = f"the traceback: {text!r}"
    return f"{name}: this is a fault of ours, {what}; {kept}; report it with that and with the files that were read"


def _drop_output() -> None:
    """What could not be printed is not tried again when the process ends."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
        return
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

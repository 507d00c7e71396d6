"""`op-tools monitor`: what a process and its children use, as a table."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from diopigen.verbosity import tell
from op_tools.environment import BadVariable
from op_tools.monitor.watch import HasEnded, NoProcess, Settings, Watch

_GIBI = 1 << 30


@click.command("monitor")
@click.argument("what", nargs=-1, type=click.UNPROCESSED, metavar="PID | -- COMMAND [ARGS]...")
@click.option("--pid", type=click.IntRange(min=1), help="The process, in the established way.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="Seconds from row to row.",
)
@click.option("--label", help="A part of the file's name, e.g. 'bf16'; default: the variable `label`.")
def command(what: tuple[str, ...], pid: int | None, interval: float, label: str | None) -> None:
    """Record the CPU, memory, threads and files that a process uses.

    The process is PID or COMMAND, together with its children, until it ends or Ctrl-C.

    A row has the time, CPU (100 for each core that is busy), resident and virtual memory in bytes, threads, open
    files, processes, and device memory in bytes, as far as nvidia-smi names the processes: dipu on other chips has no
    such tool, and the column is empty. What processes share counts for each. The first row has no CPU.

    The file is op_tools_results/process_monitor_result/process_monitor_result_<device>_pid<PID>_<label>_<time>.csv.
    Each row is written at once; OP_TOOLS_MAX_CACHE_SIZE rows wait where it is set.

    The exit code is COMMAND's, 128 and the signal's number where one ended it; with PID it is 0. It is 2 where there
    is no such process or command.

    \b
    Examples:
      op-tools monitor 4711 --interval 0.5
      op-tools monitor --label bf16 -- python train.py --steps 3
      label=bf16 python -m op_tools.process_monitor --pid 4711
    """
    if len(what) == 1 and pid is None and what[0].isdecimal():
        pid, what = int(what[0]), ()
    if (pid is None) == (not what):
        raise click.UsageError("name one process by its number, or a command after `--`")
    try:
        settings = Settings.read(interval, label)
        code = _run(what, settings) if pid is None else _watch(pid, settings)
    except (NoProcess, BadVariable) as error:
        click.echo(f"op-tools: {error}", err=True)
        code = 2
    sys.exit(code)


def _watch(pid: int, settings: Settings) -> int:
    """A process that runs already."""
    watch, ending = Watch(pid, settings), _Ending()
    with _signals(ending.ask):
        written = _follows(watch, lambda seconds: ending.is_asked_for(watch.has_ended, seconds))
        _tell(watch)
    return 0 if written else 2


class _Ending:
    """Ctrl-C ends a wait at once, and nothing else: rows that are being written are written."""

    def __init__(self) -> None:
        self._asked = self._waits = False

    def ask(self, *_: Any) -> None:
        self._asked = True
        if self._waits:
            raise KeyboardInterrupt

    def is_asked_for(self, has_ended: HasEnded, seconds: float) -> bool:
        """Whether it is time to end: the process has ended, or a stop was requested."""
        try:
            self._waits = True
            ended = self._asked or has_ended(seconds)
            self._waits = False
        except KeyboardInterrupt:
            ended = True
        self._waits = False
        return ended


def _run(words: tuple[str, ...], settings: Settings) -> int:
    """A command that is started here: it gets the signals, and this process waits until it has ended."""
    process: subprocess.Popen[bytes] | None = None

    def forward(number: int, _: Any) -> None:
        if process is not None and number != signal.SIGINT:  # Ctrl-C reaches it by itself
            process.send_signal(number)

    with _signals(forward):
        try:
            process = subprocess.Popen(words)
        except OSError as error:
            click.echo(f"op-tools: '{words[0]}' cannot be run: {error.strerror}", err=True)
            return 2
        watch = Watch(process.pid, settings)
        _follows(watch, lambda seconds: _has_ended(process, seconds))
        code = process.wait()
        _tell(watch)
    return code if code >= 0 else 128 - code


def _has_ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _follows(watch: Watch, has_ended: HasEnded) -> bool:
    """Whether the rows could be written."""
    try:
        watch.follow(has_ended)
    except OSError as error:
        click.echo(f"op-tools: {error.filename or watch.path} cannot be written: {error.strerror}", err=True)
        return False
    return True


def _tell(watch: Watch) -> None:
    seen = watch.watched
    if not seen.rows:
        click.echo("monitor: it ended before it was seen", err=True)
        return
    device = "" if seen.device_memory is None else f", {seen.device_memory / _GIBI:.3g} GiB on devices"
    most = f"{seen.cpu_percent:.0f} % CPU, {seen.rss / _GIBI:.3g} GiB resident{device}"
    tell(f"monitor: {seen.rows} rows in {watch.path}; at most {most}", err=True)


@contextmanager
def _signals(handler: Any) -> Iterator[None]:
    """`handler` for what ends a program from outside, but for what is ignored (nohup)."""
    ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    heard = [number for number in ending if signal.getsignal(number) is not signal.SIG_IGN]
    before = [(number, signal.signal(number, handler)) for number in heard]
    try:
        yield
    finally:
        for number, old in before:
            signal.signal(number, old)

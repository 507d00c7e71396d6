"""`op-tools run`: a script under tools, without a change to it."""

import json
import os
import runpy
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from diopigen.atomic import Unwritable, write_bytes
from diopigen.command_group import SectionedCommand
from diopigen.verbosity import detail, tell
from op_tools import (
    ModuleRecord,
    OpAutoCompare,
    OpCapture,
    OpDtypeCast,
    OpFallback,
    OpObserve,
    OpOverflowCheck,
    OpRecord,
    OpTimeMeasure,
    OpTool,
)
from op_tools.environment import BadVariable
from op_tools.results import results_folder, stamp
from op_tools.store import recording
from op_tools.summary import found_by, summaries

_TOOLS: dict[str, tuple[Callable[..., OpTool], str]] = {
    "observe": (OpObserve, "print the arguments and results of OPS"),
    "capture": (OpCapture, "keep each call of OPS on disk"),
    "overflow": (OpOverflowCheck, "say where OPS first give infinities or NaN"),
    "compare": (OpAutoCompare, "compare OPS with the CPU"),
    "time": (OpTimeMeasure, "time OPS"),
    "cast": (OpDtypeCast, "compute OPS in other dtypes (OP_DTYPE_CAST_DICT)"),
    "fallback": (OpFallback, "run OPS on the CPU"),
}


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    for name, (_, text) in reversed(_TOOLS.items()):
        option = click.option(
            f"--{name}",
            metavar="OPS",
            is_flag=False,
            flag_value=".*",
            default=None,
            help=f"{text[0].upper()}{text[1:]}.",
        )
        command = option(command)
    return command


@click.command(
    "run",
    cls=SectionedCommand,
    sections={
        "Tools": (*_TOOLS, "recorded"),
        "What they keep": ("folder", "per_operator", "total", "whole", "modules", "iterations", "fixed", "record"),
    },
)
@click.argument("script", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@_options
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where captures go (op_tools_results/op_capture_results), and with --compare the calls that are wrong.",
)
@click.option("--per-operator", type=click.IntRange(min=1), help="Keep at most so many calls of each overload.")
@click.option("--total", type=click.IntRange(min=1), help="Keep at most so many bytes of memory.")
@click.option(
    "--record",
    "recorded",
    type=click.Path(path_type=Path, file_okay=False),
    is_flag=False,
    flag_value=recording.DEFAULT,
    help="Record the run in this folder (op_tools_results/op_record_results), for `op-tools compare-runs`.",
)
@click.option(
    "--whole",
    type=click.IntRange(min=0),
    default=recording.WHOLE,
    show_default=True,
    help="With --record, keep tensors of up to so many elements; of larger ones a sketch.",
)
@click.option(
    "--modules", is_flag=True, help="With --record, record modules in place of operators, forward and backward."
)
@click.option(
    "--iterations",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="With --modules, end after so many steps of an optimizer.",
)
@click.option(
    "--fix-inputs",
    "fixed",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="With --modules, give each module the inputs and gradients of the run that was recorded in this folder.",
)
@click.option("--json", "record", type=click.Path(path_type=Path, dir_okay=False), help="Write what was found as JSON.")
@click.option("--stop", is_flag=True, help="End the script at the first mismatch, infinity or NaN.")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(
    context: click.Context,
    /,
    script: Path,
    args: tuple[str, ...],
    folder: Path | None,
    per_operator: int | None,
    total: int | None,
    stop: bool,
    recorded: Path | None,
    whole: int,
    modules: bool,
    iterations: int,
    fixed: Path | None,
    record: Path | None,
    **chosen: str | None,
) -> None:
    """Run SCRIPT under tools; its own arguments come after `--`.

    OPS is a list of operators, by name or regular expression, with commas between: functions of torch
    (torch.nn.functional.linear), overloads (aten.addmm.default), packets (aten.addmm), the contract's functions
    (diopiAddmm). --compare=torch.add takes one, --compare alone takes all.

    What was found is printed when the script ends. The exit code is the script's; 1 where a tool found a mismatch,
    an infinity or NaN.

    \b
    Examples:
      op-tools run train.py --compare -- --steps 3
      op-tools run train.py --capture 'aten.convolution.*' --per-operator 4
      op-tools run train.py --time --fallback aten.gelu
      op-tools run train.py --record on_dipu -- --device dipu
      op-tools run train.py --record alone --modules --fix-inputs on_cpu -- --device dipu
    """
    _require_use(context)
    extra: dict[str, dict[str, Any]] = {
        "observe": {"labels": True, "locations": True},
        "capture": {"folder": folder, "per_operator": per_operator, "total": total},
        "compare": {"stop_on_mismatch": stop, "dump": folder, "dumped_per_operator": per_operator},
        "overflow": {"stop_on_overflow": stop},
    }
    tools = {name: _TOOLS[name][0](ops, **extra.get(name, {})) for name, ops in chosen.items() if ops is not None}
    watched = None
    if (fixed is not None and not modules) or (modules and recorded is None):
        raise click.UsageError("modules are recorded with --record DIR --modules, and --fix-inputs goes with these")
    if recorded is not None and modules:
        watched = _module_record(recorded, whole, iterations, fixed)
    elif recorded is not None:
        tools["record"] = OpRecord(folder=_unused(recorded), whole=whole)
    if not tools and watched is None:
        raise click.UsageError(f"name a tool: {', '.join(f'--{name}' for name in (*_TOOLS, 'record'))}")
    try:
        with ExitStack() as stack:
            for tool in tools.values():
                stack.enter_context(tool)
            if watched is not None:
                stack.enter_context(watched)
            code = _run(script, args)
    finally:
        for line in (*summaries(tools), *(() if watched is None else watched.summary())):
            click.echo(line)
        detail(f"results: {results_folder()}")
        found_text = json.dumps(found_by(tools)).encode()
        write_bytes(results_folder() / "op_run_result" / f"op_run_info_pid{os.getpid()}_{stamp()}.json", found_text)
        if record is not None:
            write_bytes(record, found_text)
        if isinstance(timing := tools.get("time"), OpTimeMeasure):
            _write_trace(timing)
    found = any(getattr(tool, name, ()) for tool in tools.values() for name in ("mismatches", "found"))
    sys.exit(code or int(found))


_USED_BY = {
    "folder": ("capture", "compare"),
    "per_operator": ("capture", "compare"),
    "total": ("capture",),
    "stop": ("compare", "overflow"),
    "whole": ("recorded",),
    "iterations": ("modules",),
}


def _require_use(context: click.Context) -> None:
    """Raises UsageError where an option is given that no chosen tool reads."""
    options = {param.name or "": param.opts[0] for param in context.command.params}
    given = {name for name in options if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    for name, tools in _USED_BY.items():
        if name in given and not given & {*tools}:
            raise click.UsageError(f"{options[name]} is for {' and '.join(options[tool] for tool in tools)}")


def _unused(folder: Path) -> Path:
    """Where a recording goes. Raises UsageError where one lies there already, of another run."""
    place = results_folder() / recording.DEFAULT if str(folder) == recording.DEFAULT else folder
    if older := sorted(place.glob(f"rank{recording.rank()}_pid*.jsonl")):
        raise click.UsageError(f"{older[0]} is of another run; name another folder, or remove {place}")
    return place


def _module_record(recorded: Path, whole: int, iterations: int, fixed: Path | None) -> ModuleRecord:
    try:
        return ModuleRecord(folder=_unused(recorded), whole=whole, iterations=iterations, fixed_to=fixed)
    except recording.BadRecording as error:
        raise click.UsageError(str(error)) from None


def _write_trace(tool: OpTimeMeasure) -> None:
    path = results_folder() / "op_time_measure_result" / f"trace_{stamp()}.json"
    write_bytes(path, json.dumps(tool.trace()).encode())
    tell(f"trace: {path}")


def _run(script: Path, args: tuple[str, ...]) -> int:
    """The script as if Python itself had started it; its exit code."""
    before, path = sys.argv, sys.path
    sys.argv, sys.path = [str(script), *args], [str(script.parent), *sys.path]
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except (Unwritable, BadVariable):
        raise
    except Exception as error:  # the script's, as Python itself would tell it
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    finally:
        sys.argv, sys.path = before, path
    return 0

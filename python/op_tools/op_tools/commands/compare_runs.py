"""`op-tools compare-runs`: the first call at which two recorded runs part."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from diopigen.atomic import write_bytes
from op_tools.modules import render as render_modules
from op_tools.modules.comparison import are_modules, modules_compared
from op_tools.runs import render as render_calls
from op_tools.runs.comparison import CannotCompare, compared
from op_tools.store.recording import BadRecording


@click.command("compare-runs")
@click.argument("a", type=click.Path(path_type=Path, exists=True))
@click.argument("b", type=click.Path(path_type=Path, exists=True))
@click.option("--json", "record", type=click.Path(path_type=Path, dir_okay=False), help="Write what was found as JSON.")
def command(a: Path, b: Path, record: Path | None) -> None:
    """Find the first call at which two runs of `op-tools run --record` differ.

    A and B are folders, whose processes are compared rank by rank, or single files, e.g. two ranks of one run. The runs
    may be of two devices, two versions, two ways to compute the same: they need not have the same operators. What
    differs by rounding alone is no divergence. The first divergence is a call whose inputs agree and whose
    results do not: the CPU computes it again, and says which run is wrong.

    Recordings of modules (--modules) are compared module by module: what each was given and gave, forward and
    backward, and the weights. The first whose results part though its inputs agree is named.

    The exit code is 0 where the runs are equal but for rounding, 1 where they part, 2 where they cannot be compared.

    \b
    Examples:
      op-tools run train.py --record on_cpu -- --device cpu
      op-tools run train.py --record on_dipu -- --device dipu
      op-tools compare-runs on_cpu on_dipu
      op-tools compare-runs run/rank0_pid71.jsonl run/rank1_pid72.jsonl
    """
    try:
        rendered = _compared(a, b)
    except (BadRecording, CannotCompare) as error:
        click.echo(f"op-tools: {error}", err=True)
        sys.exit(2)
    for line in rendered.lines:
        click.echo(line)
    if record is not None:
        write_bytes(record, (json.dumps(rendered.facts, indent=1) + "\n").encode())
    sys.exit(0 if rendered.facts["equal"] else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rendered:
    lines: tuple[str, ...]
    facts: dict[str, Any]


def _compared(a: Path, b: Path) -> _Rendered:
    if are_modules(a, b):
        modules = modules_compared(a, b)
        return _Rendered(lines=tuple(render_modules.lines(modules)), facts=render_modules.facts(modules))
    calls = compared(a, b)
    return _Rendered(lines=tuple(render_calls.lines(calls)), facts=render_calls.facts(calls))

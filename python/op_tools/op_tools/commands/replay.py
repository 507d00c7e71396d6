"""`op-tools replay`: captured calls again, on a device."""

import sys
from collections import Counter
from pathlib import Path

import click

from diopigen.verbosity import quiet
from op_tools.commands.choice import chosen
from op_tools.devices import accelerator
from op_tools.names import NameList
from op_tools.replay import Replayed, replay
from op_tools.store.reader import BadCapture, NotAllowed


@click.command("replay")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--device", default=None, help="Where to run them; default: the accelerator of this machine.")
@click.option("--acc-check", "--acc_check", is_flag=True, help="Compare with the CPU, not with what was captured.")
@click.option("--run-times", "--run_times", type=click.IntRange(min=0), default=0, help="Time each call so many times.")
@click.option(
    "--sync-time", "--sync_time_measure", is_flag=True, help="Time each call, 100 times unless --run-times says."
)
@click.option(
    "--only-run-forward", "--only_run_forward", is_flag=True, help="Leave out calls of backward and of the optimizer."
)
@click.option("--only", metavar="OPS", default=".*", help="Only these operators, by name or regular expression.")
@click.option(
    "--allow",
    metavar="OPERATOR",
    multiple=True,
    help="Run this overload, too, though it does more than compute tensors: for captures that you trust.",
)
def command(
    folder: Path,
    device: str | None,
    acc_check: bool,
    run_times: int,
    sync_time: bool,
    only_run_forward: bool,
    only: str,
    allow: tuple[str, ...],
) -> None:
    """Run the captured calls in FOLDER again and compare what they give.

    Which operator runs is what the captures say: others than torch's own that take tensors and numbers need --allow.
    The exit code is 1 where a call gives something else or fails, 2 where captures cannot be read or are not run.

    \b
    Examples:
      op-tools replay op_tools_results/op_capture_results --device dipu --acc-check
      op-tools replay captures --only aten.convolution.default --run-times 100 --sync-time
    """
    names = NameList.of(only)
    where = device or accelerator()
    times = run_times or (100 if sync_time else 0)
    found: Counter[str] = Counter()
    try:
        for capture in chosen(folder, names, only_forward=only_run_forward, allowed=frozenset(allow)):
            result = replay(capture, where, against_cpu=acc_check, times=times)
            found[_kind(result)] += 1
            if times or not result.good or not quiet():
                click.echo(f"{'ok   ' if result.good else 'WRONG'} {capture.folder.relative_to(folder)} {result.text}")
    except NotAllowed as error:
        word = f"--allow {error.operator}"
        click.echo(f"op-tools: {error}; if you trust this capture, let it run with {word}", err=True)
        sys.exit(2)
    except BadCapture as error:
        click.echo(f"op-tools: {error}", err=True)
        sys.exit(2)
    if not found:
        which = "forward call" if only_run_forward else "call"
        click.echo(f"op-tools: no {which} in {folder} is one of '{only}'", err=True)
        sys.exit(2)
    click.echo(
        f"{sum(found.values())} calls on {where}: {', '.join(f'{n} {kind}' for kind, n in sorted(found.items()))}"
    )
    sys.exit(1 if found["wrong"] or found["failed"] else 0)


def _kind(result: Replayed) -> str:
    if result.error:
        return "failed"
    return "wrong" if not result.good else "not compared" if result.skipped else "equal"

"""`op-tools bisect`: the operator that breaks a training run."""

import sys
from pathlib import Path

import click

from diopigen.verbosity import tell
from op_tools.bisect.bisection import Bisection, Verdict
from op_tools.bisect.trial import BrokenRun, Script
from op_tools.results import results_folder, stamp


@click.command("bisect")
@click.argument("script", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--good", type=click.Choice(["cpu"]), default="cpu", show_default=True, help="Where operators are right.")
@click.option("--bad", default=None, help="The device that SCRIPT runs on; only named in what is said.")
@click.option("--metric", default="loss", show_default=True, help="A number that SCRIPT prints, e.g. 'loss 0.25'.")
@click.option(
    "--rtol", type=click.FloatRange(min=0), default=1e-3, show_default=True, help="By how much it may differ."
)
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="How often a run is made before it counts as good, where a fault seems to show at times only.",
)
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Seconds of one run.")
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False), help="Where the reproduction goes.")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def command(
    script: Path,
    good: str,
    bad: str | None,
    metric: str,
    rtol: float,
    trials: int,
    timeout: float | None,
    folder: Path | None,
    args: tuple[str, ...],
) -> None:
    """Find the operator that makes SCRIPT's metric differ from a run on the CPU.

    SCRIPT runs on the device as it is, with its ARGS after `--`, and must do the same in every run (set the seeds). It
    runs with every operator on the CPU, with none, then with halves of them, as often as the search needs: log2 of the
    number of operators. The operator that is left is compared call by call; the first wrong call is kept with a program
    that repeats it. Where no single operator is bad, a fault may show at times only: halves are run in turns, each
    up to --trials times.

    The exit code is 0 where the metric does not differ, 1 where an operator was found, 2 where the script fails.

    \b
    Examples:
      op-tools bisect train.py --bad dipu --metric loss --rtol 1e-3
      op-tools bisect train.py --metric 'eval accuracy' -- --steps 20
    """
    where = folder or results_folder() / "bisect" / stamp()
    try:
        run = Script(path=script, args=args, metric=metric, timeout=timeout)
        verdict = Bisection(script=run, rtol=rtol, folder=where, trials=trials, tell=tell).verdict()
    except BrokenRun as error:
        click.echo(f"op-tools: {error}", err=True)
        sys.exit(2)
    for line in _told(verdict, bad or "the device", good, metric):
        click.echo(line)
    sys.exit(0 if verdict.parting is None else 1)


def _told(verdict: Verdict, bad: str, good: str, metric: str) -> list[str]:
    if verdict.parting is None:
        return [f"'{metric}' is the same on {bad} as with every operator on the {good}, in {verdict.runs} runs"]
    lines = [f"{verdict.runs} runs, {verdict.searched} operators on {bad}"]
    if len(verdict.operators) != 1:
        lines.append(f"bad only together: {', '.join(verdict.operators)}")
    else:
        lines.append(f"culprit: {verdict.operators[0]}")
    if verdict.mismatch is None:
        lines.append(
            "no call of it was wrong when it was compared: it is wrong at times only, or its error is within tolerance"
        )
    else:
        symbols = ", ".join(verdict.mismatch["symbols"])
        lines += [f"  {name}: {text}" for name, text in verdict.mismatch["arguments"]]
        lines.append(verdict.mismatch["text"] + (f" ({symbols})" if symbols else ""))
    if verdict.reproduction is not None:
        lines.append(f"reproduce: python {verdict.reproduction}")
    return lines

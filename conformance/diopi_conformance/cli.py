"""The command line of the suite: parses options, runs the engine, sets the exit code."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.plan import Case, Plan, PlanError, Selection, read_plan, shard
from diopi_conformance.report import Report, read_report, show, summary, write_report

_FILTERS = (
    ("function", "Only these C functions, ex. 'diopiAdd*'."),
    ("op", "Only these operators, ex. 'max_pool*'."),
    ("topic", "Only operators of these schema files, ex. 'pooling'."),
    ("dtype", "Only cases with a tensor of these types, ex. 'bf16'."),
    ("view", "Only these memory views, ex. 'strided'."),
    ("id", "Only these cases, ex. 'add/diopiAdd/f32/*'."),
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="diopigen")
def cli() -> None:
    """Run the conformance cases of the schemas against a vendor's library.

    \b
    Examples:
      diopi-conformance plan --vendor droplet --op add       list the cases of one operator
      diopi-conformance run --vendor droplet                 run everything in build/droplet/lib
      diopi-conformance run --vendor droplet --dtype bf16 --jobs 2
      diopi-conformance run --vendor droplet --id 'add/diopiAdd/f32/strided/0'
      diopi-conformance report conformance_results/droplet.json

    Filters take shell patterns and may be given several times. Exit codes: 0 everything passed, 1 something
    did not or did not run, 2 wrong usage.
    """


def _selection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for name, text in reversed(_FILTERS):
        command = click.option(f"--{name}", f"{name}_", multiple=True, metavar="GLOB", help=text)(command)
    command = click.option("--shard", callback=_shard, metavar="I/N", help="Only the I-th of N equal parts, ex. 3/16.")(
        command
    )
    command = click.option(
        "--failed", type=click.Path(path_type=Path), metavar="REPORT", help="Only what failed in this report."
    )(command)
    command = click.option("--plan", "plan_path", type=click.Path(path_type=Path), help="A plan.json.")(command)
    return click.option("--vendor", required=True, help="A folder of vendors/.")(command)


def _shard(_context: click.Context, _param: click.Parameter, text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    index, _, count = text.partition("/")
    if not (index.isdigit() and count.isdigit() and 1 <= int(index) <= int(count)):
        raise click.BadParameter(f"'{text}' is not I/N with I from 1 to N, ex. 3/16")
    return int(index), int(count)


def _failed_ids(path: Path | None) -> tuple[str, ...]:
    if path is None:
        return ()
    return tuple(outcome.id for outcome in _read(path).bad()) or ("nothing failed",)


def _planned(vendor: str, path: Path | None, filters: dict[str, Any]) -> tuple[Plan, tuple[Case, ...]]:
    place = path or Path("generated") / vendor / "conformance" / "plan.json"
    try:
        plan = read_plan(place)
    except PlanError as error:
        raise click.UsageError(str(error)) from None
    selection = Selection(
        functions=tuple(filters["function_"]),
        ops=tuple(filters["op_"]),
        topics=tuple(filters["topic_"]),
        dtypes=tuple(filters["dtype_"]),
        views=tuple(filters["view_"]),
        ids=tuple(filters["id_"]),
    )
    cases = selection.of(plan)
    if failed := _failed_ids(filters["failed"]):
        cases = tuple(case for case in cases if case.id in failed)
    if filters["shard"] is not None:
        cases = shard(cases, *filters["shard"])
    if not cases:
        raise click.UsageError("the filters leave no case; 'diopi-conformance plan' lists them all")
    return plan, cases


@cli.command("plan")
@_selection_options
@click.option("--format", "form", type=click.Choice(("text", "json")), default="text")
def plan_command(vendor: str, plan_path: Path | None, form: str, **filters: Any) -> None:
    """List the cases."""
    _, cases = _planned(vendor, plan_path, filters)
    for case in cases:
        if form == "json":
            entry = {"id": case.id, "function": case.function, "dtypes": case.dtypes, "view": case.view}
            click.echo(json.dumps({**entry, "values": case.values}))
        else:
            click.echo(case.id)
    if form == "text":
        click.echo(f"{len(cases)} cases of {len({c.function for c in cases})} functions", err=True)


@cli.command("run")
@_selection_options
@click.option("--libraries", type=click.Path(path_type=Path), help="The folder of the .so files; build/V/lib.")
@click.option("--runtime", type=click.Path(path_type=Path), help="libdiopirt.so, where it lies elsewhere.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Worker processes.")
@click.option("--timeout", type=float, default=60.0, show_default=True, help="Seconds for one case.")
@click.option("--strict", is_flag=True, help="Functions that the library lacks fail the run.")
@click.option("--preload", help="LD_PRELOAD of the workers, ex. libasan.so.")
@click.option("--out", type=click.Path(path_type=Path), help="The JSON report; conformance_results/V.json.")
@click.option("--format", "form", type=click.Choice(("text", "json")), default="text")
def run_command(vendor: str, plan_path: Path | None, **options: Any) -> None:
    """Run the cases and report. Ctrl-C ends the run with a report of what ran."""
    plan, cases = _planned(vendor, plan_path, options)
    if options["preload"]:
        os.environ["DIOPI_WORKER_PRELOAD"] = options["preload"]
    report = _executed(plan, cases, vendor, options)
    write_report(report, options["out"] or Path("conformance_results") / f"{vendor}.json")
    if options["form"] == "json":
        click.echo(json.dumps(report.document()))
    else:
        show(report, Console())
    sys.exit(report.exit_code)


def _executed(plan: Plan, cases: tuple[Case, ...], vendor: str, options: dict[str, Any]) -> Report:
    try:
        from diopi_conformance.crew import Libraries, Unusable
        from diopi_conformance.engine import Engine, Run
    except ModuleNotFoundError as error:
        raise click.UsageError(f"the references need torch on the CPU; install it ({error})") from None
    folder = options["libraries"] or Path("build") / vendor / "lib"
    libraries = Libraries(runtime=options["runtime"] or folder / "libdiopirt.so", vendor=folder / "libdiopi_impl.so")
    for path in (libraries.runtime, libraries.vendor):
        if not path.exists():
            raise click.UsageError(f"there is no {path}; build it with 'make build IMPL={vendor}'")
    outcomes: list[Outcome] = []
    run = Run(plan=plan, cases=cases, libraries=libraries, jobs=options["jobs"], time_limit=options["timeout"])
    begin = time.perf_counter()
    with _progress(options["form"]) as progress:
        task = progress.add_task("running", total=len(cases), bad=0, rate="")

        def tell(outcome: Outcome) -> None:
            outcomes.append(outcome)
            bad = sum(o.verdict not in (Verdict.PASS, Verdict.NOT_IMPLEMENTED, Verdict.SKIPPED) for o in outcomes[-1:])
            tasks = progress.tasks[task]
            rate = len(outcomes) / max(1e-6, time.perf_counter() - begin)
            progress.update(task, advance=1, bad=tasks.fields["bad"] + bad, rate=f"{rate:.0f}/s")

        engine = Engine(run, tell)
        try:
            engine.execute()
        except KeyboardInterrupt:
            click.echo("interrupted; the report holds what ran", err=True)
        except Unusable as error:
            raise click.UsageError(str(error)) from None
    return Report(
        vendor=vendor,
        planned=len(cases),
        outcomes=tuple(outcomes),
        strict=options["strict"],
        seconds=time.perf_counter() - begin,
        leaks=tuple(engine.leaks),
    )


def _progress(form: str) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("[red]{task.fields[bad]} bad"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=form == "json" or not sys.stderr.isatty(),
        transient=True,
    )


def _read(path: Path) -> Report:
    try:
        return read_report(path)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise click.UsageError(f"{path} cannot be read as a report: {error}") from None


@cli.command("report")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(("text", "json", "summary")), default="text")
def report_command(path: Path, form: str) -> None:
    """Show the report of an earlier run again."""
    report = _read(path)
    if form == "json":
        click.echo(json.dumps(report.document()))
    elif form == "summary":
        click.echo(summary(report))
    else:
        show(report, Console())
    sys.exit(report.exit_code)


def main() -> None:
    """The console script."""
    cli()


if __name__ == "__main__":
    main()

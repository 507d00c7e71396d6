"""`diopi-conformance run`: the cases against a vendor's library, and the report."""

import os
import sys
import time
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from diopi_conformance.commands.filters import filters, planned
from diopi_conformance.commands.outputs import outputs, tell
from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.plan import Case, Plan
from diopi_conformance.report import Report, axes_of, write_report


@click.command("run")
@filters
@click.option("--libraries", type=click.Path(path_type=Path), help="The folder of the .so files; build/V/lib.")
@click.option("--runtime", type=click.Path(path_type=Path), help="libdiopirt.so, where it lies elsewhere.")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, help="Processes; as many as cores.")
@click.option("--timeout", type=float, default=60.0, show_default=True, help="Seconds for one case.")
@click.option("--strict", is_flag=True, help="Functions that the library lacks fail the run.")
@click.option("--preload", help="LD_PRELOAD of the workers, ex. libasan.so.")
@click.option("--out", type=click.Path(path_type=Path), help="The JSON report; conformance_results/V.json.")
@outputs
def command(vendor: str, plan_path: Path | None, **options: Any) -> None:
    """Run the cases and report. Ctrl-C ends the run with a report of what ran."""
    plan, cases = planned(vendor, plan_path, options)
    if options["preload"]:
        os.environ["DIOPI_WORKER_PRELOAD"] = options["preload"]
    report = _executed(plan, cases, vendor, options)
    write_report(report, options["out"] or Path("conformance_results") / f"{vendor}.json")
    tell(report, options)
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
        axes=axes_of(plan, cases),
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

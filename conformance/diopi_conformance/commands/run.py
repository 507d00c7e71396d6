"""`diopi-conformance run`: the cases against a vendor's library, and the report."""

import os
import sys
from pathlib import Path
from typing import Any

import click

from diopi_conformance.commands.filters import filters, planned, variant_of
from diopi_conformance.commands.outputs import outputs, tell
from diopi_conformance.process.worker_pool import PRELOAD, UNDER
from diopi_conformance.report import write_report
from diopi_conformance.running.execution import RunError, Settings, execute
from diopi_conformance.variables import variables


@click.command("run")
@filters
@click.option("--libraries", type=click.Path(path_type=Path), help="The folder of the .so files; build/V/lib.")
@click.option("--runtime", type=click.Path(path_type=Path), help="libdiopirt.so, where it lies elsewhere.")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Results that 'data' wrote, in place of PyTorch; conformance_data/V.",
)
@click.option(
    "--known",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Failures that are known; vendors/V/known_failures.yaml.",
)
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, help="Processes; as many as cores.")
@click.option("--timeout", type=float, default=60.0, show_default=True, help="Seconds for one case.")
@click.option("--strict", is_flag=True, help="Functions that the library lacks fail the run.")
@click.option("--resume", is_flag=True, help="Go on with a run that was broken off.")
@click.option("--preload", help="LD_PRELOAD of the workers, e.g. libasan.so.")
@click.option(
    "--under",
    metavar="COMMAND",
    help="Run the workers under it, e.g. 'compute-sanitizer --log-file %p.txt'; leaks are not looked for then.",
)
@click.option("--out", type=click.Path(path_type=Path), help="The JSON report; conformance_results/V.json.")
@outputs
@click.pass_context
def command(context: click.Context, /, vendor: str, plan_path: Path | None, **options: Any) -> None:
    """Run the cases and report. Ctrl-C ends the run with a report of what ran.

    \b
    Examples:
      diopi-conformance run --vendor droplet
      diopi-conformance run --vendor droplet --family pooling --dtype bf16
      diopi-conformance run --vendor droplet --seed 1 --nhwc --skip-dtype float64
      diopi-conformance run --vendor droplet --failed conformance_results/droplet.json
      diopi-conformance run --vendor droplet --data results      without PyTorch

    Exit codes: 0 all that ran is as it should be, 1 something is not or did not run, 2 wrong usage.
    """
    plan, cases = planned(vendor, plan_path, options)
    of_workers = {PRELOAD: options["preload"], UNDER: options["under"]}
    context.with_resource(variables(**{name: value for name, value in of_workers.items() if value}))
    settings = Settings(
        vendor=vendor,
        out=options["out"] or Path("conformance_results") / f"{vendor}.json",
        libraries=options["libraries"],
        runtime=options["runtime"],
        known=options["known"],
        data=options["data"],
        jobs=options["jobs"],
        timeout=options["timeout"],
        strict=options["strict"],
        resume=options["resume"],
        variant=variant_of(options),
    )
    try:
        report = execute(plan, cases, settings)
    except RunError as error:
        raise click.UsageError(str(error)) from None
    write_report(report, settings.out)
    tell(report, options)
    sys.exit(report.exit_code)

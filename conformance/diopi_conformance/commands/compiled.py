"""`diopi-conformance compiled`: the cases through torch.compile."""

import os
import sys
import time
from pathlib import Path
from typing import Any

import click

from diopi_conformance.commands.filters import SECTIONS, filters, planned, variant_of
from diopi_conformance.commands.outputs import outputs, tell
from diopi_conformance.outcome import Verdict
from diopi_conformance.places import BACKEND, installed_backend, places_of
from diopi_conformance.report import Report, axes_of, write_report
from diopi_conformance.running.progress import metered
from diopigen.command_group import SectionedCommand
from diopigen.verbosity import tell as say

_SECTIONS = {"How they run": ("dynamic", "jobs", "batch", "level", "timeout")}


@click.command("compiled", cls=SectionedCommand, sections={**SECTIONS, **_SECTIONS})
@filters
@click.option("--libraries", type=click.Path(path_type=Path), help="The folder of the .so files; build/V/lib.")
@click.option("--dynamic", is_flag=True, help="Sizes are symbols: torch.compile(dynamic=True).")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, help="Processes; as many as cores.")
@click.option(
    "--batch", type=click.IntRange(1), help="Cases in one compiled function; 32, and 16 where sizes are symbols."
)
@click.option(
    "--level",
    type=click.Choice(["0", "1", "2", "3"]),
    help="The optimizer's level for programs; the vendor's own, and 1 where sizes are symbols.",
)
@click.option("--timeout", type=float, default=600.0, show_default=True, help="Seconds for one batch.")
@click.option("--out", type=click.Path(path_type=Path), help="The JSON report; conformance_results/V-compiled.json.")
@outputs
def command(vendor: str, plan_path: Path | None, **options: Any) -> None:
    """Run the cases through torch.compile(backend="diopi") and report.

    A case becomes a call of the ATen operator that stands for its function, on the device. It is skipped where no
    operator says it, or where the eager operator, for reasons of its own, does not give what the case expects. What is
    left is compiled and judged as the function is; random operators must draw what the eager ones draw.

    \b
    Examples:
      diopi-conformance compiled --vendor droplet
      diopi-conformance compiled --vendor droplet --dynamic --shard 1/8
      diopi-conformance compiled --vendor droplet --id 'add/f32/*' --batch 1

    Exit codes: 0 all that ran is as it should be, 1 something is not or did not run, 2 wrong usage.
    """
    from diopi_conformance.compiled.run import CannotStart, Options, run

    plan, cases = planned(vendor, plan_path, options)
    places = places_of(vendor)
    libraries = options["libraries"] or places.libraries
    backend = libraries if (libraries / BACKEND).exists() else installed_backend() or libraries
    for path in (backend / BACKEND, libraries / "libdiopi_impl.so"):
        if not path.exists():
            raise click.UsageError(f"there is no {path}; build it with '{places.build}'")
    chosen = Options(
        plan_path=plan_path or places.plan,
        models=options["models"],
        variant=variant_of(options),
        libraries=libraries.resolve(),
        backend=backend.resolve(),
        dynamic=options["dynamic"],
        level=options["level"] or ("1" if options["dynamic"] else None),
        jobs=options["jobs"],
        batch=options["batch"] or (16 if options["dynamic"] else 32),
        timeout=options["timeout"],
    )
    begin = time.perf_counter()
    fine = (Verdict.PASS, Verdict.SKIPPED)
    with metered(len(cases), "compiling") as meter:
        try:
            found = run(plan, cases, chosen, lambda outcome: meter.advance(1, int(outcome.verdict not in fine)))
        except CannotStart as reason:
            raise click.ClickException(str(reason)) from None
    report = Report(
        vendor=vendor,
        planned=len(cases),
        outcomes=tuple(found.outcomes),
        axes=axes_of(plan, cases),
        seconds=time.perf_counter() - begin,
        variant=variant_of(options),
        interrupted=found.interrupted,
    )
    name = f"{vendor}-compiled{'-dynamic' if options['dynamic'] else ''}.json"
    write_report(report, options["out"] or Path("conformance_results") / name)
    tell(report, options)
    say(", ".join(f"{count} {what}" for what, count in sorted(found.figures.items())))
    sys.exit(report.exit_code)

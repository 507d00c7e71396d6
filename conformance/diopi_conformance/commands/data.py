"""`diopi-conformance data`: expected results for machines that have no PyTorch."""

import os
from pathlib import Path
from typing import Any

import click

from diopi_conformance.commands.filters import SECTIONS, filters, planned
from diopi_conformance.expected.stored_reader import DataError
from diopi_conformance.running.execution import DATA
from diopi_conformance.running.progress import metered
from diopigen.command_group import SectionedCommand
from diopigen.verbosity import tell


@click.command("data", cls=SectionedCommand, sections={**SECTIONS, "How they are computed": ("jobs", "largest")})
@filters
@click.option("--out", type=click.Path(path_type=Path), help="The folder; conformance_data/V.")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, help="Processes; as many as cores.")
@click.option(
    "--largest",
    type=click.IntRange(1),
    default=8192,
    show_default=True,
    metavar="ELEMENTS",
    help="No case with a larger tensor: those are skipped, and told so, where the results are used.",
)
def command(vendor: str, plan_path: Path | None, out: Path | None, jobs: int, largest: int, **chosen: Any) -> None:
    """Write the expected results, to run elsewhere without PyTorch.

    Inputs are not in them: they are drawn again from the seed, with numpy. The folder belongs to one plan and one seed.

    \b
    Examples:
      diopi-conformance data --vendor droplet --out results
      diopi-conformance data --vendor droplet --largest 1000000  every case
      diopi-conformance run --vendor droplet --data results      on the machine of the chip
    """
    plan, cases = planned(vendor, plan_path, chosen)
    try:
        from diopi_conformance.expected.stored_writer import store
    except ModuleNotFoundError as error:
        raise click.UsageError(f"PyTorch computes the results; install it ({error})") from None
    folder = out or DATA / vendor
    try:
        with metered(sum(case.largest <= largest for case in cases), "computing") as meter:
            count, size = store(plan, cases, folder, jobs, meter.advance, largest)
    except DataError as error:
        raise click.UsageError(str(error)) from None
    tell(f"the results of {count} cases are in {folder}, {size / 1e6:.1f} MB")
    if count < len(cases):
        click.echo(f"{len(cases) - count} cases have a tensor of more than {largest} elements and are left out")

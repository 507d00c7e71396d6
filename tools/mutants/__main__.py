"""The command: `python -m tools.mutants`."""

import os
import sys
import time
from fnmatch import fnmatchcase
from pathlib import Path

import click

from diopi_conformance.cases.plan import PlanError, read_plan
from diopigen.diagnostics import Diagnostics
from tools.mutants.build import NotBuilt, Vendor, build_mutants
from tools.mutants.mutant import FOLDER, Mutant, read_mutants
from tools.mutants.report import Report, shown, write
from tools.mutants.schemata import Misplaced
from tools.mutants.score import Score, prepare_suite, scores

ROOT = Path(__file__).resolve().parents[2]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--vendor", default="droplet", show_default=True, help="Whose library to plant faults in.")
@click.option("--build", "build_path", type=click.Path(path_type=Path), help="Its build; build/V.")
@click.option("--only", multiple=True, metavar="GLOB", help="Only these mutants, e.g. 'softmax/*'.")
@click.option("--part", metavar="K/N", help="Only each N-th mutant, from the K-th on.")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="The JSON report; build/mutants/V.json.")
@click.option("--list", "listed", is_flag=True, help="List the mutants and end.")
def main(
    vendor: str,
    build_path: Path | None,
    only: tuple[str, ...],
    part: str | None,
    jobs: int,
    out: Path | None,
    listed: bool,
) -> None:
    """Plant faults in a vendor's library; the conformance suite must see 99% of them.

    Exit codes: 0 it does, 1 it does not or a mutant that is listed as equivalent dies, 2 wrong usage.
    """
    begin = time.perf_counter()
    mutants = chosen(only)[_slice(part)]
    if listed:
        for mutant in mutants:
            click.echo(f"{mutant.name:40} {mutant.source}: {mutant.before!r} -> {mutant.after!r}")
        return
    folder = ROOT / "build" / "mutants"
    try:
        plan = read_plan(ROOT / "generated" / vendor / "conformance" / "plan.json")
        original = Vendor(build_path or ROOT / "build" / vendor, ROOT, vendor)
        click.echo(f"building {len(mutants)} mutants", err=True)
        folders = build_mutants(original, mutants, folder / vendor, jobs)
    except (NotBuilt, Misplaced, PlanError) as error:
        raise click.UsageError(str(error)) from None
    click.echo(f"built in {time.perf_counter() - begin:.0f} s; asking the library without a fault", err=True)
    healthy = folders.get("", original.build / "lib")
    suite = prepare_suite(plan, mutants, healthy, lambda done, all_: click.echo(f"  {done} of {all_}", err=True))
    for outcome in suite.bad:
        click.echo(f"without a fault, {outcome.id} fails: {outcome.message}", err=True)
    found: list[Score] = []
    for each in scores(suite, mutants, folders, jobs):
        found.append(each)
        what = f"{each.verdict} of {each.by}" if each.by else f"survived {each.asked} cases"
        click.echo(f"[{len(found)}/{len(mutants)}] {each.mutant.name}: {what}", err=True)
    report = Report(scores=tuple(found), seconds=time.perf_counter() - begin)
    write(report, out or folder / f"{vendor}.json")
    click.echo(shown(report))
    sys.exit(max(report.exit_code, 1 if suite.bad else 0))


def chosen(only: tuple[str, ...]) -> tuple[Mutant, ...]:
    """The mutants of the project whose names fit. Raises UsageError where there are none, or their files are wrong."""
    diagnostics = Diagnostics()
    mutants = read_mutants(FOLDER, ROOT, diagnostics)
    if diagnostics.found:
        raise click.UsageError("\n".join(f"{d.span}: {d.message}" for d in diagnostics.found))
    wanted = tuple(m for m in mutants if not only or any(fnmatchcase(m.name, pattern) for pattern in only))
    if not wanted:
        raise click.UsageError("no mutant has such a name; --list shows them all")
    return wanted


def _slice(part: str | None) -> slice:
    """Of "2/5", each fifth from the second on. Raises UsageError for other texts."""
    if part is None:
        return slice(None)
    first, separator, step = part.partition("/")
    if not (separator and first.isdecimal() and step.isdecimal() and 1 <= int(first) <= int(step)):
        raise click.UsageError(f"--part takes K/N with K from 1 to N, e.g. 2/5, not '{part}'")
    return slice(int(first) - 1, None, int(step))


if __name__ == "__main__":
    main()

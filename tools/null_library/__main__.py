"""The command: `python -m tools.null_library`."""

import json
import sys
import time
from pathlib import Path

import click
import torch

from diopi_conformance.cases.plan import PlanError, read_plan
from tools.null_library.build import NULL_LIBRARIES, build_null_libraries
from tools.null_library.verdicts import Tally, expected, poisoned_names, tallies

ROOT = Path(__file__).resolve().parents[2]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--vendor", default="droplet", show_default=True, help="Whose plan has the cases.")
@click.option("--runtime", type=click.Path(path_type=Path), help="libdiopirt.so; build/V/lib/libdiopirt.so.")
@click.option("--every", type=click.IntRange(1), default=1, show_default=True, help="Only each N-th case.")
@click.option("--out", type=click.Path(path_type=Path), help="The JSON report; build/null_libraries/report.json.")
def main(vendor: str, runtime: Path | None, every: int, out: Path | None) -> None:
    """Run the operator cases against libraries that compute nothing.

    Exit codes: 0 none of them fools the suite, 1 a function is passed by one, 2 wrong usage.
    """
    begin = time.perf_counter()
    torch.set_num_threads(1)
    try:
        plan = read_plan(ROOT / "generated" / vendor / "conformance" / "plan.json")
    except PlanError as error:
        raise click.UsageError(str(error)) from None
    place = (runtime or ROOT / "build" / vendor / "lib" / "libdiopirt.so").resolve()
    if not place.exists():
        raise click.UsageError(f"there is no {place}; build it with 'make build IMPL={vendor}'")
    libraries = build_null_libraries(ROOT, ROOT / "build" / "null_libraries")
    cases = [case for case in plan.cases if not case.models][::every]
    found = tallies(plan, cases, place, libraries, _told)
    document = {name: _document(name, tally) for name, tally in found.items()}
    target = out or ROOT / "build" / "null_libraries" / "report.json"
    target.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    bad = _show(found, len(cases), len(plan.functions))
    click.echo(f"{time.perf_counter() - begin:.0f} s")
    sys.exit(1 if bad else 0)


def _told(done: int, all_: int) -> None:
    if done % 3200 == 0 or done == all_:
        click.echo(f"  {done} of {all_} cases", err=True)


def _document(name: str, tally: Tally) -> dict[str, object]:
    return {
        "passes": tally.passes,
        "trivial": tally.trivial,
        "judged": len(tally.judged),
        "fooled": tally.fooled,
        "unexpected": expected(name, tally),
    }


def _show(found: dict[str, Tally], cases: int, functions: int) -> bool:
    bad = False
    names = {library.name: library.what for library in NULL_LIBRARIES} | {name: "" for name in poisoned_names()}
    click.echo(f"{'library':12} {'passes':>7} {'trivial':>7} {'judged functions':>17} {'passed functions':>17}")
    for name, tally in found.items():
        click.echo(
            f"{name:12} {len(tally.passes):7} {len(tally.trivial):7} {len(tally.judged):17} {len(tally.fooled):17}"
            f"  {names[name]}"
        )
        for complaint in expected(name, tally):
            click.echo(f"  {complaint}")
            bad = True
    click.echo(f"{cases} cases of {functions} functions")
    return bad


if __name__ == "__main__":
    main()

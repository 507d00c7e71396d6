"""`op-tools coverage`: what runs of torch's samples measured of each operator, as a page."""

import sys
from pathlib import Path

import click


@click.command("coverage")
@click.argument("reports", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="The page, in Markdown; default: a summary."
)
def command(reports: tuple[Path, ...], out: Path | None) -> None:
    """Write which operator works in which dtype, as runs with `torch-tests --suite opinfo --coverage` measured it.

    REPORTS are those of one or several vendors and releases of torch; the parts of a run that was split by --shard are
    put together, if the schemas and the tools were the same.

    Exit codes: 0; 1 if a result was wrong; 2 for a report without a measurement, or parts that do not belong together.

    \b
    Examples:
      op-tools coverage measured.json
      op-tools coverage droplet-2.13.json droplet-2.15.json --out docs/operator-coverage.md
    """
    from diopigen.atomic import write_bytes
    from op_tools.torch_tests.coverage.measured import WRONG, NoMeasurement, read_measured, together
    from op_tools.torch_tests.coverage.page import counts, page

    try:
        found = together([read_measured(path) for path in reports])
    except NoMeasurement as error:
        click.echo(f"op-tools: {error}", err=True)
        sys.exit(2)
    if out is not None:
        try:
            write_bytes(out, page(found).encode())
        except OSError as error:
            click.echo(f"op-tools: {out} cannot be written: {error.strerror}", err=True)
            sys.exit(2)
    for one in found:
        shown = ", ".join(f"{verdict} {count}" for verdict, count in sorted(counts(one).items()))
        click.echo(f"{one.vendor}, torch {one.release}: {shown}")
    sys.exit(int(any(counts(one)[WRONG] for one in found)))

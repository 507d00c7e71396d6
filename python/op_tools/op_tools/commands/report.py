"""`op-tools report`: what tools found, operator by operator, as a page and as JSON."""

import sys
from pathlib import Path

import click


@click.command("report")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="The page; FOLDER/report.html.")
@click.option("--json", "record", type=click.Path(path_type=Path, dir_okay=False), help="Write the same as JSON, too.")
def command(folder: Path, html: Path | None, record: Path | None) -> None:
    """Write one HTML page about the results in FOLDER; it needs no network.

    Times, comparisons, captures, fallbacks and overflows of several tools and runs are put together by operator:
    calls, time, bytes, FLOP, worst error, shapes and dtypes, with links to captures. Files that cannot be read are
    named on the page, and the exit code is 1 then; it is 2 where there is nothing to tell.

    \b
    Examples:
      op-tools run train.py --time --compare && op-tools report op_tools_results
      op-tools report op_tools_results --html operators.html --json operators.json
    """
    from diopigen.atomic import write_bytes
    from diopigen.verbosity import tell
    from op_tools.report.operators import as_json, operators
    from op_tools.report.page import page
    from op_tools.report.sources import read

    sources = read(folder) if folder.is_dir() else None
    if sources is None or sources.empty:
        click.echo(f"op-tools: {folder} holds no results; 'op-tools run SCRIPT --time --compare' writes some", err=True)
        sys.exit(2)
    gathering = operators(sources, folder)
    path = html or folder / "report.html"
    text = page(gathering, sources, folder.resolve(), path.resolve())
    try:
        write_bytes(path, text.encode())
        if record is not None:
            write_bytes(record, as_json(gathering, sources).encode())
    except OSError as error:
        click.echo(f"op-tools: {error.filename} cannot be written: {error.strerror}", err=True)
        sys.exit(2)
    for reason in sources.broken:
        click.echo(f"op-tools: {reason}", err=True)
    tell(f"{len(gathering.found)} operators: {path}")
    sys.exit(1 if sources.broken else 0)

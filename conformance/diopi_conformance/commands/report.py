"""`diopi-conformance report`: what an earlier run found."""

import json
import sys
from pathlib import Path

import click
from rich.console import Console

from diopi_conformance.commands.filters import report_at
from diopi_conformance.report import show, summary


@click.command("report")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(("text", "json", "summary")), default="text")
def command(path: Path, form: str) -> None:
    """Show the report of an earlier run again."""
    report = report_at(path)
    if form == "json":
        click.echo(json.dumps(report.document()))
    elif form == "summary":
        click.echo(summary(report))
    else:
        show(report, Console())
    sys.exit(report.exit_code)

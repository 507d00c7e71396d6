"""`diopi-conformance report`: what an earlier run found."""

import sys
from pathlib import Path
from typing import Any

import click

from diopi_conformance.commands.filters import report_at
from diopi_conformance.commands.outputs import outputs, tell


@click.command("report")
@click.argument("path", type=click.Path(path_type=Path))
@outputs
def command(path: Path, **options: Any) -> None:
    """Show the report of an earlier run again. The exit code is the run's.

    \b
    Examples:
      diopi-conformance report conformance_results/droplet.json --html droplet.html
      diopi-conformance report new.json --against old.json --format summary
      diopi-conformance report new.json --junit junit.xml --csv cases.csv
    """
    report = report_at(path)
    tell(report, options)
    sys.exit(report.exit_code)

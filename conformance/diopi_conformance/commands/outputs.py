"""The forms in which a report is told, shared by the command that makes it and the one that shows it again."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from diopi_conformance.commands.filters import report_at
from diopi_conformance.report import Report, show, summary
from diopi_conformance.report.differences import Differences, differences
from diopi_conformance.report.terminal import show_differences
from diopigen.atomic import write_text
from diopigen.verbosity import console

_FILES = (
    ("html", "A page for browsers, one file that needs no network."),
    ("junit", "JUnit XML, for CI servers."),
    ("csv", "One line for each case."),
)


def outputs(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --format, --html, --junit, --csv and --against; their values reach `tell` as they are."""
    command = click.option(
        "--against",
        type=click.Path(path_type=Path),
        callback=_earlier,
        metavar="REPORT",
        help="An earlier report: tell what changed.",
    )(command)
    for name, text in reversed(_FILES):
        command = click.option(f"--{name}", type=click.Path(path_type=Path), metavar="FILE", help=text)(command)
    forms = click.Choice(("text", "json", "summary"))
    return click.option("--format", "form", type=forms, default="text", help="What is printed.")(command)


def tell(report: Report, options: dict[str, Any]) -> None:
    """Write the files that were asked for, and print. Raises Unwritable."""
    found = None if options["against"] is None else differences(report, options["against"])
    _write_files(report, found, options)
    match options["form"]:
        case "json":
            document = report.document()
            if found is not None:
                document["changes"] = found.document()
            click.echo(json.dumps(document))
        case "summary":
            click.echo(summary(report))
        case _:
            show(report, console())
            if found is not None:
                show_differences(found, console())


def _write_files(report: Report, found: Differences | None, options: dict[str, Any]) -> None:
    from diopi_conformance.report.junit import junit
    from diopi_conformance.report.page import page
    from diopi_conformance.report.table import table
    from diopigen.page.site import site_link

    texts: dict[str, Callable[[], str]] = {
        "html": lambda: page(report, found, site_link(options["html"], "conformance.html")),
        "junit": lambda: junit(report),
        "csv": lambda: table(report),
    }
    for name, text in texts.items():
        path = options[name]
        if path is not None:
            write_text(path, text())


def _earlier(_context: click.Context, _param: click.Parameter, path: Path | None) -> Report | None:
    """Read before the run begins: a wrong path costs no run then, and the new report may take the old one's place."""
    return None if path is None else report_at(path)

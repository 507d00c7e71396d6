"""Prints findings in the format that was asked for."""

import sys
from collections.abc import Callable
from pathlib import Path

import click

from diopigen.diagnostics import Diagnostics, Severity, render_github, render_human, render_json
from diopigen.project import installed
from diopigen.verbosity import tell


def print_findings(diagnostics: Diagnostics, root: Path, error_format: str, notes: bool = True) -> None:
    """Findings go to standard error for people, to standard output for programs; without `notes` these are counted."""
    causes = Diagnostics(found=diagnostics.causes)
    shown = causes if notes else Diagnostics(found=[d for d in causes.found if d.severity is not Severity.NOTE])
    match error_format:
        case "json":
            lines, stream = render_json(shown), sys.stdout
        case "github":
            lines, stream = render_github(shown), sys.stdout
        case "sarif":
            from diopigen.commands.rules import rules
            from diopigen.commands.sarif import render_sarif

            explained = rules(installed() / "docs" / "diagnostics.yaml")
            lines, stream = iter([render_sarif(shown, explained)]), sys.stdout
        case _:
            lines, stream = render_human(shown, root, _styled), sys.stderr
    for line in lines:
        click.echo(line, file=stream)
    if error_format == "human" and causes.found:
        hidden = "" if len(shown.found) == len(causes.found) else "; 'diopigen lint --notes' shows the notes"
        tell(f"{summary(causes)}{hidden}", err=True)


_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


def _styled(style: Severity | None, text: str) -> str:
    """In the colour of a severity, or bold; click.echo leaves that out where it is not wanted."""
    return click.style(text, bold=True, fg=None if style is None else _COLOURS[style])


def telling(without: str) -> Callable[[Exception], None]:
    """What tells on standard error that torch is missing, and what a command does without it."""
    return lambda missing: print(f"{missing}; {without}", file=sys.stderr)


def summary(diagnostics: Diagnostics) -> str:
    """e.g. "2 errors, 1 warning"."""
    counts = []
    for severity in Severity:
        count = sum(1 for finding in diagnostics.found if finding.severity is severity)
        if count:
            counts.append(f"{count} {severity.value}{'s' if count > 1 else ''}")
    return ", ".join(counts)

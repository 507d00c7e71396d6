"""Prints findings in the format that was asked for."""

import sys
from collections.abc import Callable
from pathlib import Path

from diopigen.diagnostics import Diagnostics, Severity, render_github, render_human, render_json


def print_findings(diagnostics: Diagnostics, root: Path, error_format: str, notes: bool = True) -> None:
    """Findings go to standard error for people, to standard output for programs; without `notes` these are counted."""
    causes = Diagnostics(found=diagnostics.causes)
    shown = causes if notes else Diagnostics(found=[d for d in causes.found if d.severity is not Severity.NOTE])
    match error_format:
        case "json":
            lines, stream = render_json(shown), sys.stdout
        case "github":
            lines, stream = render_github(shown), sys.stdout
        case _:
            lines, stream = render_human(shown, root), sys.stderr
    for line in lines:
        print(line, file=stream)
    if error_format == "human" and causes.found:
        hidden = "" if len(shown.found) == len(causes.found) else "; 'diopigen lint --notes' shows the notes"
        print(f"{summary(causes)}{hidden}", file=sys.stderr)


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

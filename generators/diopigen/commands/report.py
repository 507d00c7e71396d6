"""Prints findings in the format that was asked for."""

import sys
from pathlib import Path

from diopigen.diagnostics import Diagnostics, Severity, render_github, render_human, render_json


def print_findings(diagnostics: Diagnostics, root: Path, error_format: str) -> None:
    """Findings go to standard error for people, to standard output for programs."""
    match error_format:
        case "json":
            lines, stream = render_json(diagnostics), sys.stdout
        case "github":
            lines, stream = render_github(diagnostics), sys.stdout
        case _:
            lines, stream = render_human(diagnostics, root), sys.stderr
    for line in lines:
        print(line, file=stream)
    if error_format == "human" and diagnostics.found:
        print(summary(diagnostics), file=sys.stderr)


def summary(diagnostics: Diagnostics) -> str:
    """ex) "2 errors, 1 warning"."""
    counts = []
    for severity in Severity:
        count = sum(1 for finding in diagnostics.found if finding.severity is severity)
        if count:
            counts.append(f"{count} {severity.value}{'s' if count > 1 else ''}")
    return ", ".join(counts)

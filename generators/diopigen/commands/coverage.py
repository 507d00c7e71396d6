"""Reports what one vendor has of the contract and what the last conformance run said of it."""

import json
import sys
from pathlib import Path

from diopigen.atomic import MALFORMED, write_text
from diopigen.boundary import UNUSABLE
from diopigen.commands.report import print_findings, telling
from diopigen.diagnostics import Diagnostics
from diopigen.model.program import Program
from diopigen.page.site import site_link
from diopigen.pipeline import Stage, run
from diopigen.project import Project
from diopigen.targets.coverage import Run, conformance_run, coverage, page
from diopigen.targets.coverage.outputs import Format
from diopigen.targets.output import renderer


def report_coverage(project: Project, vendor: str, form: Format, out: Path | None, results: Path | None) -> int:
    """Prints the coverage, or writes it to `out`; the exit code: 0, 1 where schemas or vendor have errors, or 2.

    `results` is a conformance report; unless given, the one that `diopi-conformance run` leaves.
    """
    diagnostics = Diagnostics()
    program = vendor_program(project, vendor, diagnostics)
    if program is None or diagnostics.failed:
        print_findings(diagnostics, project.root, "human", notes=False)
        return 1
    try:
        run = last_run(project, vendor, results)
    except ValueError as error:
        print(error, file=sys.stderr)
        return UNUSABLE
    site = site_link(out, "index.html") if out is not None and form == "html" else ""
    text = page(coverage(program, run), form, renderer(project.templates), site)
    if out is None:
        sys.stdout.write(text)
    else:
        write_text(out.absolute(), text)
    return 0


def vendor_program(project: Project, vendor: str, diagnostics: Diagnostics) -> Program | None:
    """Everything about one vendor; without torch the bindings are left out, and standard error says so."""
    told = telling("no overload is counted")
    program = run(project, diagnostics, Stage.ATEN, Stage.VENDOR, vendor=vendor, without_torch=told)
    return None if program is None or program.vendor is None else program


def last_run(project: Project, vendor: str, results: Path | None = None) -> Run | None:
    """The last conformance run of `vendor`, or None if there was none. Raises ValueError with a sentence."""
    path = results or project.root / "conformance_results" / f"{vendor}.json"
    if results is None and not path.is_file():
        return None
    try:
        return conformance_run(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        place = f"{project.shown(path)}:{error.lineno}:{error.colno}"
        raise ValueError(f"{place}: cannot be read as a conformance report: {error.msg}") from error
    except (OSError, *MALFORMED) as error:
        raise ValueError(f"{project.shown(path)} cannot be read as a conformance report: {error}") from error

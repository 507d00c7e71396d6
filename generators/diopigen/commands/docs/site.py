"""Gathers what the documentation site shows, and writes its pages."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from diopigen.boundary import UNUSABLE
from diopigen.commands.coverage import last_run
from diopigen.commands.docs.programs import programs
from diopigen.commands.report import print_findings, telling
from diopigen.diagnostics import Diagnostics
from diopigen.emit.place import MANIFEST
from diopigen.emit.writer import plan_writes, write
from diopigen.model.program import Program
from diopigen.pipeline import Stage, run
from diopigen.project import Project
from diopigen.targets.coverage import Coverage, coverage
from diopigen.targets.docs import Site, outputs
from diopigen.targets.output import renderer
from diopigen.verbosity import tell

_BESIDE = ("conformance/README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")


def write_docs(project: Project, out: Path, error_format: str) -> int:
    """Writes mkdocs.yml and pages/ under `out`; the exit code: 0, 1 where the schemas or a vendor have errors, or 2."""
    diagnostics = Diagnostics()
    try:
        site = _site(project, diagnostics)
    except ValueError as error:
        print(error, file=sys.stderr)
        return UNUSABLE
    pages = [] if site is None or diagnostics.failed else list(outputs(site, renderer(project.templates), diagnostics))
    print_findings(diagnostics, project.root, error_format, notes=False)
    if diagnostics.failed:
        return 1
    root = out.absolute()
    plan = plan_writes(pages, root, root / MANIFEST, owned=("mkdocs.yml", "pages/"))
    write(plan)
    if error_format == "human":
        tell(f"{len(pages)} files, {len(plan.changes)} changed")
    return 0


def _site(project: Project, diagnostics: Diagnostics) -> Site | None:
    program = run(project, diagnostics, Stage.ATEN, without_torch=telling("the pages show no bindings"))
    if program is None:
        return None
    return Site(
        program=program,
        coverages=tuple(_coverages(project, program, diagnostics)),
        guides=_texts(project, _guides(project)),
        pictures=_texts(project, sorted((project.root / "docs").glob("*.svg"))),
        programs=tuple(programs()),
        sources=_texts(project, _sources(project)),
    )


def _coverages(project: Project, program: Program, diagnostics: Diagnostics) -> Iterator[Coverage]:
    for vendor in project.vendor_names():
        served = run(project, diagnostics, Stage.VENDOR, vendor=vendor, program=program)
        if served is not None and served.vendor is not None:
            yield coverage(served, last_run(project, vendor))


def _texts(project: Project, paths: Iterable[Path]) -> dict[str, str]:
    return {project.shown(path): path.read_text(encoding="utf-8") for path in paths}


def _guides(project: Project) -> list[Path]:
    """The pages of docs/, and those that lie beside what they are about."""
    beside = (project.root / name for name in _BESIDE)
    return [*sorted((project.root / "docs").glob("*.md")), *(path for path in beside if path.is_file())]


def _sources(project: Project) -> list[Path]:
    """The files that pages point into, each shown on a page of its own."""
    schemas = [project.schemas / "dtypes.yaml", project.schemas / "runtime.yaml"]
    schemas += sorted((project.schemas / "ops").glob("*.yaml"))
    configs = (project.vendor_folder(vendor) / "convert_config.yaml" for vendor in project.vendor_names())
    return [*schemas, *(path for path in configs if path.is_file())]

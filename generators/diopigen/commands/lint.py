"""Runs every pass without writing anything and prints what it finds."""

from diopigen.commands.answer import Answer, answer
from diopigen.commands.report import print_findings
from diopigen.diagnostics import Diagnostics, Severity
from diopigen.project import Project
from diopigen.verbosity import tell


def lint(project: Project, vendor: str | None, error_format: str, notes: bool) -> int:
    """Checks the schemas and, with `vendor`, its files; the exit code: 0 clean, 1 an error was found."""
    diagnostics = Diagnostics()
    skipped: list[Exception] = []

    def checked() -> Answer | None:
        from diopigen.pipeline import Stage, run
        from diopigen.source.vendor.known_failures import check_known_failures

        program = run(project, diagnostics, *Stage, vendor=vendor, keep=True, without_torch=skipped.append)
        if vendor is not None:
            path = project.vendor_folder(vendor) / "known_failures.yaml"
            check_known_failures(path, project.shown(path), diagnostics)
        if program is None:
            return None
        return Answer(f"{len(program.ops)} ops, {len(program.functions)} functions", lasting=not skipped)

    counts = answer(project, vendor, ("lint",), diagnostics, checked)
    print_findings(diagnostics, project.root, error_format, notes)
    if error_format == "human":
        for missing in skipped:
            print(f"{missing}; the 'aten:' lines were not checked")
        if counts is not None and all(d.severity is Severity.NOTE for d in diagnostics.found):
            tell(f"{counts}: no problems found")
    return 1 if diagnostics.failed else 0

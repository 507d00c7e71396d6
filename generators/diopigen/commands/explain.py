"""Shows what follows from one op: signatures, bindings, conversions, cases, each with the line that gave it."""

import sys
from dataclasses import replace

from diopigen.commands.answer import Answer, answer
from diopigen.commands.report import print_findings, telling
from diopigen.diagnostics import Diagnostics
from diopigen.project import Project


def explain(project: Project, name: str, vendor: str | None, error_format: str) -> int:
    """Prints what follows from the op or function `name`; the exit code: 0 found, 1 not, or a file has errors."""
    diagnostics = Diagnostics()
    unknown: list[str] = []

    def explained() -> Answer | None:
        from diopigen.commands.explanation import explanation, find
        from diopigen.pipeline import Stage, run
        from diopigen.text import suggestion

        missing: list[Exception] = []
        program = run(
            project, diagnostics, Stage.ATEN, Stage.VENDOR, vendor=vendor, keep=True, without_torch=missing.append
        )
        for each in missing:
            telling("bindings are not shown")(each)
        if program is None:
            return None
        found = find(program, name)
        if found is None:
            known = [op.name for op in program.ops] + [f.symbol for f in program.functions]
            hint = suggestion(name, known)
            unknown.append(f"there is no op or function '{name}'" + (f"; {hint}" if hint else ""))
            return None
        op, functions = found
        planned = run(project, diagnostics, Stage.CASES, program=program.part((op,)))
        assert planned is not None
        lines = explanation(replace(program, cases=planned.cases), op, functions)
        return Answer("\n".join(lines), lasting=not missing)

    text = answer(project, vendor, ("explain", name), diagnostics, explained)
    if text is not None:
        print(text)
    if text is None or diagnostics.failed:
        print_findings(diagnostics, project.root, error_format, notes=text is None)
    for line in unknown:
        print(line, file=sys.stderr)
    return 1 if text is None or diagnostics.failed else 0

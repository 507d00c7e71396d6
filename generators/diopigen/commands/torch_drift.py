"""Holds the schemas of the bound operators in one release of torch against those in another."""

import sys
from dataclasses import dataclass
from pathlib import Path

from diopigen.aten import records
from diopigen.atomic import write_text
from diopigen.commands.report import print_findings, telling
from diopigen.diagnostics import Diagnostics
from diopigen.model.program import Program
from diopigen.pipeline import Stage, run
from diopigen.project import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A bound overload that differs between two releases; a schema is None where the release has no such overload."""

    overload: str  # e.g. "add.Tensor"
    op: str  # e.g. "add"
    place: str  # e.g. "schemas/ops/arithmetic.yaml:9:3": where it is bound
    old: str | None
    new: str | None


def drifts(program: Program, old: records.Schemas, new: records.Schemas) -> list[Drift]:
    """In order of name; defaults, names and types of arguments all count."""
    found = []
    for binding in program.bindings:
        name = binding.overload.name
        if old.get(name) != new.get(name):
            place = str(binding.span)
            found.append(Drift(overload=name, op=binding.op, place=place, old=old.get(name), new=new.get(name)))
    return sorted(found, key=lambda drift: drift.overload)


def torch_drift(project: Project, old: str, new: str) -> int:
    """Prints how the bound operators differ between two releases; the exit code: 0 they do not, 1 some do.

    Raises records.NoRecord where a release is not known, records.TorchMissing without torch.
    """
    folder = project.schemas / "aten"
    before, after = records.read(old, folder), records.read(new, folder)
    diagnostics = Diagnostics()
    program = run(project, diagnostics, Stage.ATEN, without_torch=telling("no operator is bound"))
    if program is None or diagnostics.failed:
        print_findings(diagnostics, project.root, "human")
        return 1
    found = drifts(program, before, after)
    for drift in found:
        print(f"{drift.place}: {drift.overload} of '{drift.op}'")
        print(f"  torch {old}: {drift.old or 'has no such overload'}")
        print(f"  torch {new}: {drift.new or 'has no such overload'}")
    count = len(program.bindings)
    print(f"{count} bound overloads, {len(found)} differ between torch {old} and {new}", file=sys.stderr)
    return 1 if found else 0


def save_torch(path: Path) -> None:
    """Keeps what the installed torch declares. Raises records.TorchMissing without it."""
    write_text(path, records.text(records.installed()))

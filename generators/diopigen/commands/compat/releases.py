"""Holds one release of torch against another, in what this checkout uses of it."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from diopigen.aten import interface, records
from diopigen.aten.releases import Recorded, Releases
from diopigen.aten.uses import uses
from diopigen.atomic import write_text
from diopigen.commands.report import print_findings, telling
from diopigen.diagnostics import Diagnostics
from diopigen.model.program import Program
from diopigen.passes.aten.drift import Drift
from diopigen.passes.aten.leave_out import lost_overloads
from diopigen.pipeline import Stage, run
from diopigen.project import Project
from diopigen.source.cpp.written_files import written_files
from diopigen.verbosity import tell


@dataclass(frozen=True, slots=True, kw_only=True)
class Drifted:
    """Something of torch that differs between two releases; None where the release has none."""

    what: str  # e.g. "add.Tensor of 'add'"
    place: str  # e.g. "schemas/ops/arithmetic.yaml:9:3": where it is used
    old: str | None
    new: str | None
    breaks: bool = True


def drifts(program: Program, old: records.Schemas, new: records.Schemas) -> list[Drifted]:
    """The bound overloads, in order of name; defaults, names and types of arguments all count."""
    found = []
    for binding in sorted(program.bindings, key=lambda b: b.overload.name):
        name = binding.overload.name
        if old.get(name) != new.get(name):
            what = f"{name} of '{binding.op}'"
            found.append(Drifted(what=what, place=str(binding.span), old=old.get(name), new=new.get(name)))
    return found


def _handwritten(
    project: Project, old: records.Schemas, new: records.Schemas, releases: tuple[str, str]
) -> Iterator[Drifted]:
    """The overloads that hand-written C++ serves under the older release, and under the newer no more."""
    drift = Drift(release=releases[1], releases=Releases.of(releases[0], old), diagnostics=Diagnostics())
    files = written_files(project.runtime / "torch", "runtime_cpp/torch")
    for name, reason, span in lost_overloads(files, Recorded(schemas=new), drift):
        what = f"{name} of hand-written C++"
        yield Drifted(what=what, place=str(span), old=old.get(name), new=f"left out: {reason}")


def _interface(project: Project, old: str, new: str) -> Iterator[Drifted]:
    """Names, headers and virtual functions. Raises records.NoRecord, records.TorchMissing."""
    used = uses(project.root)
    folder = project.schemas / "aten"
    before, after = (interface.of_release(word, folder, used) for word in (old, new))
    for word, release in ((old, before), (new, after)):
        if count := interface.unasked(used, release):
            print(f"the record of torch {word} lacks {count} names and headers; save it anew", file=sys.stderr)
    for found in interface.differences(used, before, after):
        yield Drifted(what=found.what, place=str(found.place), old=found.old, new=found.new, breaks=found.breaks)


def torch_drift(project: Project, old: str, new: str) -> int:
    """Prints what differs between two releases; the exit code: 1 if something of it breaks, else 0.

    Where a release has no record of names and headers, operators alone are compared. Raises records.NoRecord where a
    release is not known, records.TorchMissing without torch.
    """
    folder = project.schemas / "aten"
    before, after = records.read(old, folder), records.read(new, folder)
    diagnostics = Diagnostics()
    program = run(project, diagnostics, Stage.ATEN, without_torch=telling("no operator is bound"))
    if program is None or diagnostics.failed:
        print_findings(diagnostics, project.root, "human")
        return 1
    operators = [*drifts(program, before, after), *_handwritten(project, before, after, (old, new))]
    try:
        others = list(_interface(project, old, new))
    except records.NoRecord as missing:
        print(f"only operators are compared: {missing}", file=sys.stderr)
        others = []
    for drift in (*operators, *others):
        print(f"{drift.place}: {drift.what}")
        print(f"  torch {old}: {drift.old or 'has none'}")
        print(f"  torch {new}: {drift.new or 'has none'}")
    breaking = sum(drift.breaks for drift in others)
    tell(
        f"{len(program.bindings)} bound overloads and hand-written ones, {len(operators)} differ between torch {old} "
        f"and {new}; of names, headers and virtual functions {len(others)}, of which {breaking} break something",
        err=True,
    )
    return 1 if operators or breaking else 0


def save_torch(project: Project, path: Path) -> None:
    """Keeps what the installed torch declares, and beside it, as JSON, what this checkout uses of it else.

    Raises records.TorchMissing without it.
    """
    schemas = records.text(records.installed())
    used = uses(project.root)
    tell(f"looking at {len(used.names)} names and {len(used.headers)} headers of torch", err=True)
    observed = interface.observe(used)
    write_text(path, schemas)
    interface.write(path.with_suffix(".json"), observed)

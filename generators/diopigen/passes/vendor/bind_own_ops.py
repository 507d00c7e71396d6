"""The operators of a vendor's own: the entries of the folders that its vendor.yaml or the command line names."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from diopigen.diagnostics import Diagnostics, Span
from diopigen.kept import KeptTexts
from diopigen.model.op import Op
from diopigen.model.program import Program
from diopigen.passes.contract.bind_ops import bind_ops
from diopigen.passes.vendor.bases import read_folder
from diopigen.project import Project


def bind_own_ops(
    program: Program, project: Project, vendor: str, diagnostics: Diagnostics, kept: KeptTexts | None
) -> Program:
    """Adds the vendor's own operators to `ops`; their names, and those of their topics, are new."""
    own: list[Op] = []
    for path, span in schema_folders(project, vendor):
        if not path.is_dir():
            diagnostics.error("missing-folder", f"there is no {project.shown(path)}", span)
            continue
        taken = len(diagnostics.found)
        found = bind_ops(path, project.shown, program.dtypes, diagnostics, kept, (*program.ops, *own))
        if not found and len(diagnostics.found) == taken:
            message = f"there is no entry in {project.shown(path)}"
            diagnostics.error("no-entries", message, span, "write one into a file of it, such as operators.yaml")
        own += (_owned(op, vendor, diagnostics) for op in found)
    header = f"functions_{vendor}" if own else None
    return replace(program, ops=(*program.ops, *own), own_header=header)


def schema_folders(project: Project, vendor: str) -> Iterator[tuple[Path, Span]]:
    """Each folder once, with the place that names it; of mistakes in vendor.yaml `bind_vendor` tells."""
    folder = read_folder(project, vendor, Diagnostics())
    named = () if folder is None else folder.surface.schemas
    seen: set[Path] = set()
    for position, name in enumerate(named):
        assert folder is not None
        path = (folder.path / name).resolve()
        if path not in seen:
            seen.add(path)
            yield path, folder.at("schemas", position)
    for path in project.more_schemas:
        if path not in seen:
            seen.add(path)
            yield path, Span(path=project.shown(path), line=1, column=1)


def _owned(op: Op, vendor: str, diagnostics: Diagnostics) -> Op:
    if (place := op.places.at("header")) is not None:
        message = f"'{op.name}' is declared in functions_{vendor}.h, as every operator of the vendor's own"
        diagnostics.error("header-of-own", message, place.span, "remove 'header'")
    return replace(op, header=f"functions_{vendor}", topic=f"{vendor}_{op.topic}")

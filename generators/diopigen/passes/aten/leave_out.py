"""Leaves out the hand-written C++ files that do not compile against the installed torch, with their operators."""

from dataclasses import replace

from diopigen.diagnostics import Span
from diopigen.model.aten import WrittenFile
from diopigen.model.program import Program
from diopigen.passes.aten.catalog import Catalog
from diopigen.passes.aten.drift import Drift


def leave_out(program: Program, files: tuple[WrittenFile, ...], catalog: Catalog, drift: Drift) -> Program:
    """Fills `derivations` and `left_out`, adds to `drifted`, and removes the bindings that a file left out served.

    A file stays if each operator that it names is declared as in one of the supported releases, where it compiles.
    """
    spelled = {name.replace(".", "_"): name for name in catalog.names()}
    lost: list[WrittenFile] = []
    for file in files:
        found = _obstacle(file, spelled, catalog, drift)
        if found is not None:
            reason, span = found
            drift.diagnostics.warning("aten-file-drifted", f"'{file.path}' is left out: {reason}", span)
            lost.append(file)
            for overload, op in _served(program, file, spelled):
                drift.note(overload, op, reason)
    wrappers = {file.stem for file in lost if not file.derives}
    bindings = {b.overload.name: b for b in program.bindings if b.wrapper not in wrappers}
    return replace(
        program,
        bindings=tuple(bindings.values()),
        drifted=tuple(d for d in drift.found.values() if d.overload not in bindings),
        derivations=tuple(file.stem for file in files if file.derives and file not in lost),
        left_out=tuple(file.path for file in lost),
    )


def _served(program: Program, file: WrittenFile, spelled: dict[str, str]) -> list[tuple[str, str | None]]:
    """The overloads that are lost with the file, each with its op."""
    if file.derives:
        bound = {b.overload.name for b in program.bindings}
        return [(name, None) for struct in file.registers if (name := spelled.get(struct)) and name not in bound]
    return [(b.overload.name, b.op) for b in program.bindings if b.wrapper == file.stem]


def _obstacle(file: WrittenFile, spelled: dict[str, str], catalog: Catalog, drift: Drift) -> tuple[str, Span] | None:
    """Why the file does not compile, and where; None also for what no release has, of which the compiler tells."""
    for stem, span in file.headers:
        if not catalog.packet(stem) and not catalog.packet(f"{stem}_"):
            known = drift.releases.declared(stem)
            if known:
                return drift.lacks(known), span
    for name, span in file.operators:
        overload = catalog.overload(spelled[name]) if name in spelled else None
        known = drift.releases.spelled(name)
        if known and overload is None:
            return drift.lacks(known), span
        if known and overload is not None and len(drift.differing(overload)) == len(known):
            return drift.differs(known), span
    return None

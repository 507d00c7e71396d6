"""Holds the headers that follow from the schemas against older ones, and saves what they declare."""

from dataclasses import dataclass
from pathlib import Path

from diopigen.atomic import write_text
from diopigen.commands.report import print_findings
from diopigen.diagnostics import Diagnostics
from diopigen.emit.staged import staged_headers
from diopigen.model.interface import Interface
from diopigen.model.program import Program
from diopigen.passes.compat.interfaces import compare_interfaces
from diopigen.passes.compat.places import with_places
from diopigen.pipeline import run
from diopigen.project import Project
from diopigen.source.cpp.c_interface import read_interface
from diopigen.source.cpp.earlier_headers import EarlierHeaders, NoHeaders, headers_at, headers_of_revision
from diopigen.source.cpp.interface_record import is_record, read_record, record_text
from diopigen.targets import header
from diopigen.verbosity import tell

__all__ = ["NoHeaders", "Request", "compat"]

_ADDITIONS_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What one call of the command line asks for."""

    against: str | None  # e.g. "v0.3/functions.h", "v0.3/include", "HEAD~20", "contract.record"
    save: Path | None
    include: tuple[Path, ...] = ()  # further folders for what the older headers include
    error_format: str = "human"


def compat(project: Project, request: Request) -> int:
    """Prints how the contract differs from `request.against`; the exit code: 0 nothing breaks, 1 something does.

    Raises NoHeaders if there is nothing to compare with.
    """
    diagnostics = Diagnostics()
    program = run(project, diagnostics)
    if program is None or diagnostics.failed:
        print_findings(diagnostics, project.root, request.error_format)
        return 1
    include = staged_headers(program, project)
    ours = _contract_interface(program, include, project, diagnostics)
    if ours is None:
        print_findings(diagnostics, project.root, request.error_format)
        return 1
    if request.against is not None:
        old = _earlier(project, request, include, diagnostics)
        if old is not None and not old.headers:
            raise NoHeaders(f"'{request.against}' declares nothing")
        if old is not None:
            compare_interfaces(old, ours, diagnostics)
            _print(old, diagnostics, project, request)
        else:
            print_findings(diagnostics, project.root, request.error_format)
    if request.save is not None:
        write_text(request.save, record_text(ours))
        if request.error_format == "human":
            tell(f"{request.save}: {len(ours.functions)} functions of {len(ours.headers)} headers")
    return 1 if diagnostics.failed else 0


def _contract_interface(
    program: Program, include: Path, project: Project, diagnostics: Diagnostics
) -> Interface | None:
    """What the headers of the present schemas declare, as clang reads them."""
    paths = [include / "diopi" / f"{name}.h" for name, _ in header.views(program)]
    read = read_interface(paths, [include], lambda path: _shown(path, include, project), diagnostics)
    return None if read is None else with_places(read, program)


def _shown(path: Path, staged: Path, project: Project) -> str:
    """The checked-in header in place of an equal one in the cache."""
    if path.is_relative_to(staged):
        checked_in = project.generated / "include" / path.relative_to(staged)
        if checked_in.is_file() and checked_in.read_bytes() == path.read_bytes():
            return project.shown(checked_in)
    return project.shown(path)


def _earlier(project: Project, request: Request, ours: Path, diagnostics: Diagnostics) -> Interface | None:
    """What the older headers declare; what they include and do not have beside them is read from `ours`."""
    assert request.against is not None
    path = Path(request.against)
    if path.is_file() and is_record(path):
        return read_record(path, project.shown(path), diagnostics)
    headers = headers_at(path) if path.exists() else _revision(project, request.against)
    folders = [*headers.include_dirs, *request.include, ours, ours / "diopi"]
    return read_interface(headers.paths, folders, project.shown, diagnostics)


def _revision(project: Project, revision: str) -> EarlierHeaders:
    include = project.shown(project.generated / "include")
    try:
        return headers_of_revision(project.root, revision, include, project.cache)
    except NoHeaders as error:
        raise NoHeaders(f"'{revision}' is no file and no folder, and {error}") from error


def _print(old: Interface, diagnostics: Diagnostics, project: Project, request: Request) -> None:
    """Everything for programs; for people additions are a list of a few lines."""
    if request.error_format != "human":
        print_findings(diagnostics, project.root, request.error_format)
        return
    additions = [d for d in diagnostics.ordered() if d.code == "compat-added"]
    rest = Diagnostics(found=[d for d in diagnostics.found if d.code != "compat-added"])
    print_findings(rest, project.root, request.error_format)
    for addition in additions[:_ADDITIONS_SHOWN]:
        print(f"{addition.span}: {addition.message}")
    if len(additions) > _ADDITIONS_SHOWN:
        print(f"and {len(additions) - _ADDITIONS_SHOWN} more additions; --error-format json lists them all")
    if not diagnostics.failed:
        functions, others = len(old.functions), len(old.enums) + len(old.structs) + len(old.types)
        tell(f"nothing breaks of {request.against} (functions: {functions}, types: {others})")

"""Reads a header, says which of its functions no schema gives, and writes entries that give them."""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from diopigen.atomic import write_text
from diopigen.c_spelling import c_args
from diopigen.commands.report import print_findings
from diopigen.diagnostics import Diagnostics
from diopigen.emit.staged import staged_headers
from diopigen.model.guess import GuessedOp
from diopigen.model.interface import DeclaredFunction
from diopigen.model.op import Function
from diopigen.model.program import Program
from diopigen.pipeline import run
from diopigen.project import Project
from diopigen.source.cpp.c_interface import read_interface
from diopigen.source.cpp.earlier_headers import headers_at
from diopigen.source.guess.forms import with_forms
from diopigen.source.guess.ops import guess_op
from diopigen.source.schema.surface import Header
from diopigen.targets.import_header import entries
from diopigen.targets.output import renderer
from diopigen.verbosity import tell


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What one call of the command line asks for."""

    header: Path
    out: Path | None  # None: standard output
    include: tuple[Path, ...] = ()
    error_format: str = "human"


def import_header(project: Project, request: Request) -> int:
    """Writes entries for what the schemas lack; the exit code: 0, or 1 if something cannot be read or written."""
    diagnostics = Diagnostics()
    program = run(project, diagnostics)
    declared = None if program is None else _declared(project, program, request, diagnostics)
    if program is None or declared is None:
        print_findings(diagnostics, project.root, request.error_format)
        return 1
    missing = _missing(declared, program, diagnostics)
    ops = _guessed(missing, program, request.header.stem)
    kept = _that_come_back(ops, missing, project, diagnostics)
    print_findings(diagnostics, project.root, request.error_format)
    if kept:
        text = entries(kept, request.header.name, renderer(project.templates))
        if request.out is None:
            sys.stdout.write(text)
        else:
            write_text(request.out, text)
    if request.error_format == "human":
        tell(_summary(declared, missing, kept, request), err=True)
    return 1 if diagnostics.failed else 0


def _declared(
    project: Project, program: Program, request: Request, diagnostics: Diagnostics
) -> tuple[DeclaredFunction, ...] | None:
    headers = headers_at(request.header)
    ours = staged_headers(program, project)
    folders = [*headers.include_dirs, *request.include, ours, ours / "diopi"]
    interface = read_interface(headers.paths, folders, project.shown, diagnostics)
    return None if interface is None else interface.functions


def _missing(
    declared: Sequence[DeclaredFunction], program: Program, diagnostics: Diagnostics
) -> dict[str, DeclaredFunction]:
    """The operators among `declared` that no schema gives, by name."""
    known = {f.symbol for f in program.functions} | {f.name for f in program.runtime.functions}
    missing = {}
    for function in declared:
        if function.name in known:
            continue
        first = function.params[0].type.spelled if function.params else None
        if function.returns.spelled == "diopiError_t" and first == "diopiContextHandle_t" and _is_ours(function):
            missing[function.name] = function
        else:
            diagnostics.warning(
                "not-an-operator",
                f"'{function.name}' is no operator, and no entry is written for it",
                function.span,
                "an operator takes a diopiContextHandle_t first and returns a diopiError_t",
            )
    return missing


def _is_ours(function: DeclaredFunction) -> bool:
    return function.name.startswith("diopi") and function.name != "diopi"


def _guessed(missing: Mapping[str, DeclaredFunction], program: Program, header: str) -> list[GuessedOp]:
    taken = [op.name for op in program.ops]
    named = header if header in get_args(Header) else "functions"
    ops: list[GuessedOp] = []
    for function in missing.values():
        ops.append(guess_op(function, named, [*taken, *(op.name for op in ops)]))
    return list(with_forms(ops, missing))


def _that_come_back(
    ops: Sequence[GuessedOp],
    missing: Mapping[str, DeclaredFunction],
    project: Project,
    diagnostics: Diagnostics,
) -> list[GuessedOp]:
    """The ops whose entries are read without a finding and give their functions again; the others are reported."""
    text = entries(ops, "a header", renderer(project.templates))
    given, found = _given_by(text, project)
    reasons = {name: message for line, message in reversed(found) if (name := _entry_at(text, line)) is not None}
    kept = []
    for op in ops:
        changed = [symbol for symbol in op.symbols if given.get(symbol) != _signature(missing[symbol])]
        variadic = [symbol for symbol in op.symbols if missing[symbol].variadic]
        if not changed and not variadic and op.name not in reasons:
            kept.append(op)
            continue
        symbol = (*variadic, *changed, *op.symbols)[0]
        reason = "it takes more arguments, by '...'" if variadic else reasons.get(op.name, _UNSAID)
        message = f"no entry gives '{symbol}': {reason}"
        diagnostics.error("not-importable", message, missing[symbol].span, "write its entry by hand")
    return kept


_UNSAID = "the language cannot say its parameters"


def _entry_at(text: str, line: int) -> str | None:
    """The op whose entry the line of a schema belongs to."""
    heads = [head for head in text.splitlines()[:line] if head.endswith(":") and head[:1].islower()]
    return heads[-1].removesuffix(":") if heads else None


def _given_by(text: str, project: Project) -> tuple[dict[str, list[tuple[str, str]]], list[tuple[int, str]]]:
    """What the entries of `text` declare, and what is found wrong with them, by line."""
    found = Diagnostics()
    with tempfile.TemporaryDirectory() as folder:
        write_text(Path(folder) / "imported.yaml", text)
        checked = run(project, found, entries=Path(folder))
    functions = () if checked is None else checked.functions
    return {f.symbol: _c_parameters(f) for f in functions}, [(d.span.line, d.message) for d in found.found]


def _c_parameters(function: Function) -> list[tuple[str, str]]:
    return [(arg.type, arg.name) for arg in c_args(function)]


def _signature(function: DeclaredFunction) -> list[tuple[str, str]]:
    """As a header without names would have to be written: the context is always called ctx."""
    rest = [(p.type.spelled, p.name or f"arg{at}") for at, p in enumerate(function.params)]
    return [(function.params[0].type.spelled, "ctx"), *rest[1:]]


def _summary(
    declared: Sequence[DeclaredFunction],
    missing: Mapping[str, DeclaredFunction],
    kept: Sequence[GuessedOp],
    request: Request,
) -> str:
    counts = f"{request.header}: {len(missing)} of {len(declared)} functions are in no schema"
    return f"{counts}; {len(kept)} entries give {sum(len(op.symbols) for op in kept)} of them"

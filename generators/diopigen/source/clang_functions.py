"""What libclang sees in one file, as plain values that a cache can hold."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diopigen.source.clang import canonical, functions_in, is_external, parse, precompile

Report = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """Headers that are read already."""

    flags: tuple[str, ...] = ()  # ex) ("-include-pch", "common.pch")
    read: tuple[str, ...] = ()  # the paths of these headers and of all that they include


def precompiled(headers: Sequence[str], flags: Sequence[str], target: Path, namespace: str) -> Common:
    """The headers, precompiled into `target`; nothing if they cannot stand together or define functions themselves."""
    text = "".join(f'#include "{header}"\n' for header in headers)
    parsed = precompile(text, flags, target)
    if parsed is None or any(cursor.is_definition() for cursor in functions_in(parsed, namespace)):
        return Common()
    return Common(flags=("-include-pch", str(target)), read=parsed.includes)


def report(path: Path, flags: Sequence[str], common: Common, namespace: str, prefix: str) -> tuple[Report, list[str]]:
    """The definitions in `namespace` whose names begin with `prefix`, and the paths of all files that were read."""
    parsed = parse(path, [*flags, *common.flags])
    if common.flags and parsed.complaints:
        # Headers that the file does not include may contradict it: it is judged by what it includes itself.
        common, parsed = Common(), parse(path, flags)
    definitions = [
        _definition(cursor)
        for cursor in functions_in(parsed, namespace)
        if cursor.spelling.startswith(prefix) and cursor.is_definition() and is_external(cursor)
    ]
    found = {
        "definitions": definitions,
        "missing": [
            {"header": c.missing, "path": c.path, "line": c.line, "column": c.column}
            for c in parsed.complaints
            if c.missing is not None
        ],
        "errors": [
            {"message": c.message, "path": c.path, "line": c.line, "column": c.column}
            for c in parsed.complaints
            if c.missing is None
        ],
    }
    return found, [str(path), *dict.fromkeys((*common.read, *parsed.includes))]


def _definition(cursor: Any) -> Report:
    arguments = list(cursor.get_arguments())
    location = cursor.location
    return {
        "symbol": cursor.spelling,
        "types": [canonical(argument.type) for argument in arguments],
        "spelled": [argument.type.spelling for argument in arguments],
        "returns": canonical(cursor.result_type),
        "c_linkage": cursor.mangled_name == cursor.spelling,
        "path": "" if location.file is None else str(Path(location.file.name).resolve()),
        "line": location.line,
        "column": location.column,
    }


def types_of(where: Path, flags: Sequence[str], declaration: str) -> tuple[Report, list[str]]:
    """The canonical parameter types of the one function that `declaration` declares at its end."""
    parsed = parse(where / "contract_types.cpp", flags, declaration)
    errors = [f"{c.path}:{c.line}:{c.column}: {c.message}" for c in parsed.complaints]
    declared = [cursor for cursor in functions_in(parsed, "") if cursor.spelling == "contract"]
    types = [canonical(argument.type) for cursor in declared for argument in cursor.get_arguments()]
    return {"types": types, "errors": errors}, list(parsed.includes)

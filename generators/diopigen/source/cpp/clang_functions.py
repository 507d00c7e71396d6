"""What libclang sees in one file, as plain values that a cache can hold."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any

from diopigen.source.cpp.clang import (
    WITH_ERRORS,
    Complaint,
    Parsed,
    canonical,
    declarations_in,
    functions_in,
    functions_of,
    is_external,
    is_inline,
    members_in,
    namespace_of,
    parse,
    precompile,
    reexports_of,
)

Report = dict[str, Any]

# Threads that look through cursors at once would hand Python's lock to each other at every cursor.
_LOOKING = Lock()

# A library has each of these once: a file that defines one belongs to the device.
_DEVICE = (
    "initLibrary",
    "finalizeLibrary",
    "diopiGetDeviceApi",
    "diopiGetCollectivesApi",
    "device_malloc",
    "buildGeneratorState",
    "main",
)
_DEVICE_WORDS = re.compile("|".join(rf"\b{name}\b" for name in _DEVICE).encode())
# A file that may define operators through macros of a header that is missing.
_OPERATORS = re.compile(rb"\bimpl\b|diopi/functions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """Headers that are read already."""

    flags: tuple[str, ...] = ()  # e.g. ("-include-pch", "common.pch")
    read: tuple[str, ...] = ()  # the paths of these headers and of all that they include
    complaints: tuple[Complaint, ...] = ()  # of these headers


def precompiled(headers: Sequence[str], flags: Sequence[str], target: Path, namespace: str, prefix: str) -> Common:
    """The headers, e.g. "<vector>", that are there, precompiled into `target`, even where some that they include are
    missing; nothing if clang has any other complaint, or if they define functions themselves."""
    text = "".join(f"#if __has_include({header})\n#include {header}\n#endif\n" for header in headers)
    parsed = precompile(text, flags, target)
    if parsed is None or any(True for _ in _definitions(parsed, namespace, prefix)):
        return Common()
    return Common(flags=("-include-pch", str(target), *WITH_ERRORS), read=parsed.includes, complaints=parsed.complaints)


def report(path: Path, flags: Sequence[str], common: Common, namespace: str, prefix: str) -> tuple[Report, list[str]]:
    """The definitions in `namespace` and the namespaces inside it whose names begin with `prefix`, and the paths of all
    files that were read. The file includes every header of `common` itself."""
    parsed = parse(path, [*flags, *common.flags])
    complaints = (*common.complaints, *parsed.complaints)
    if common.flags and complaints and not any(c.missing is not None for c in complaints):
        # A header may depend on what the file says before it: the file is judged by what it reads in its own order.
        common, parsed = Common(), parse(path, flags)
    parsed = replace(parsed, complaints=(*common.complaints, *parsed.complaints))
    with _LOOKING:
        found = _found(parsed, path, namespace, prefix)
    return found, [str(path), *dict.fromkeys((*common.read, *parsed.includes))]


def _found(parsed: Parsed, path: Path, namespace: str, prefix: str) -> Report:
    device = _is_device(parsed, path, namespace)
    return {
        "definitions": list(_definitions(parsed, namespace, prefix)),
        "device": device,
        "concerned": not device and _OPERATORS.search(_content(path)) is not None,
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


def _is_device(parsed: Parsed, path: Path, namespace: str) -> bool:
    """Whether the file itself defines what a library has once, in `namespace` with C linkage; cursors are many, so its
    words are asked first."""
    if _DEVICE_WORDS.search(_content(path)) is None:
        return False
    within = (c for c in functions_of(members_in(parsed, namespace)) if _c_linkage(c))
    found = chain(declarations_in(parsed, [path]), within)
    return any(c.spelling in _DEVICE and c.is_definition() for c in found)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _definitions(parsed: Parsed, namespace: str, prefix: str) -> Iterator[Report]:
    members = members_in(parsed, namespace, nested=True, outside=True)
    for cursor in functions_of(members):
        found = cursor.spelling.startswith(prefix) and cursor.is_definition() and is_external(cursor)
        if found and (namespace_of(cursor) or _c_linkage(cursor)):
            yield _definition(cursor, cursor)
    for using, cursor in reexports_of(members):
        body = cursor.get_definition() if cursor.spelling.startswith(prefix) else None
        if body is not None and is_external(body) and "" not in namespace_of(body):
            yield _definition(using, body)


def _c_linkage(cursor: Any) -> bool:
    return bool(cursor.mangled_name == cursor.spelling)


def _definition(named: Any, cursor: Any) -> Report:
    """`named` is the function itself, or the using declaration that gives it another namespace."""
    arguments = list(cursor.get_arguments())
    location = named.location
    return {
        "symbol": cursor.spelling,
        "namespace": "::".join(namespace_of(named)),
        "called": "::".join(namespace_of(cursor, inline=True)),
        "types": [canonical(argument.type) for argument in arguments],
        "spelled": [argument.type.spelling for argument in arguments],
        "returns": canonical(cursor.result_type),
        "c_linkage": _c_linkage(cursor),
        "inline": is_inline(cursor),
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

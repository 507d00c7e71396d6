"""The only module that calls libclang: a parsed file as cursors, with every complaint of clang sorted by kind."""

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from clang import cindex

# Function bodies are parsed, for a skipped one does not count as a definition, but templates in them are not
# instantiated; after a header that is missing the parser goes on.
_INCOMPLETE, _KEEP_GOING = 0x02, 0x200

_MISSING = re.compile(r"'(?P<header>[^']+)' file not found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """An error of clang."""

    message: str  # ex) "unknown type name 'cudaStream_t'"
    missing: str | None  # ex) "cuda_runtime.h": the header that is not there
    path: str
    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """One translation unit; the cursors live as long as it does."""

    unit: Any
    includes: tuple[str, ...]  # absolute paths of all headers, each once
    complaints: tuple[Complaint, ...]


def parse(path: Path, flags: Sequence[str], text: str | None = None) -> Parsed:
    """Parses `path`, or `text` under that name. Safe to call from several threads at once."""
    unsaved = [] if text is None else [(str(path), text)]
    unit = cindex.Index.create().parse(
        str(path),
        args=[*flags, *_builtin_headers()],
        unsaved_files=unsaved,
        options=_INCOMPLETE | _KEEP_GOING,
    )
    includes = dict.fromkeys(str(Path(i.include.name).resolve()) for i in unit.get_includes())
    return Parsed(unit=unit, includes=tuple(includes), complaints=tuple(_complaints(unit)))


@cache
def _builtin_headers() -> tuple[str, ...]:
    """Where stddef.h and stdbool.h are: libclang's wheel has none of its own, so the compiler's serve."""
    compiler = shutil.which("g++") or shutil.which("clang++") or shutil.which("c++")
    if compiler is None:
        return ()
    found = subprocess.run(
        [compiler, "-print-file-name=include"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return ("-isystem", found) if found and Path(found).is_dir() else ()


def _complaints(unit: Any) -> Iterator[Complaint]:
    for diagnostic in unit.diagnostics:
        if diagnostic.severity < cindex.Diagnostic.Error:
            continue
        location = diagnostic.location
        missing = _MISSING.search(diagnostic.spelling)
        yield Complaint(
            message=diagnostic.spelling,
            missing=None if missing is None else missing["header"],
            path="" if location.file is None else str(Path(location.file.name).resolve()),
            line=max(1, location.line),
            column=max(1, location.column),
        )


_SCOPES = (cindex.CursorKind.LINKAGE_SPEC, cindex.CursorKind.UNEXPOSED_DECL)


def functions_in(parsed: Parsed, namespace: str) -> Iterator[Any]:
    """Cursors of the functions declared in `namespace` ("impl::droplet", or "" for C), wherever they stand.

    An inline namespace counts as its parent; an unnamed one does not.
    """
    yield from _functions(parsed.unit.cursor, tuple(namespace.split("::")) if namespace else ())


def _functions(scope: Any, wanted: tuple[str, ...]) -> Iterator[Any]:
    for cursor in scope.get_children():
        kind = cursor.kind
        if kind == cindex.CursorKind.FUNCTION_DECL:
            if _namespace(cursor) == wanted:
                yield cursor
        elif kind in _SCOPES:
            yield from _functions(cursor, wanted)
        elif kind == cindex.CursorKind.NAMESPACE:
            path = _namespace(cursor, itself=True)
            if path == wanted[: len(path)]:
                yield from _functions(cursor, wanted)


def _namespace(cursor: Any, itself: bool = False) -> tuple[str, ...]:
    """The namespaces around a cursor, the outermost first; an unnamed one is an empty string."""
    names: list[str] = []
    scope = cursor if itself else cursor.semantic_parent
    while scope is not None and scope.kind != cindex.CursorKind.TRANSLATION_UNIT:
        if scope.kind not in _SCOPES and not cindex.conf.lib.clang_Cursor_isInlineNamespace(scope):
            names.append(scope.spelling if scope.kind == cindex.CursorKind.NAMESPACE else "(class)")
        scope = scope.semantic_parent
    return tuple(reversed(names))


def is_external(cursor: Any) -> bool:
    """Whether other files can call the function."""
    return bool(cursor.linkage == cindex.LinkageKind.EXTERNAL)


def tokens_of(unit: Any, path: Path) -> Iterator[Any]:
    """The tokens of one file of the unit, before macros are expanded."""
    file = unit.get_file(str(path))
    start, end = (cindex.SourceLocation.from_offset(unit, file, offset) for offset in (0, path.stat().st_size))
    yield from unit.get_tokens(extent=cindex.SourceRange.from_locations(start, end))


def canonical(type_: Any) -> str:
    """The type with typedefs resolved; a const of the parameter itself goes, for callers do not see it."""
    resolved = type_.get_canonical()
    spelling = str(resolved.spelling)
    if not resolved.is_const_qualified():
        return spelling
    return spelling.removesuffix("const").rstrip() if spelling.endswith("const") else spelling.removeprefix("const ")

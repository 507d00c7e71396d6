"""The only module that calls libclang: a parsed file as cursors, with every complaint of clang sorted by kind."""

import ctypes
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from clang import cindex

# Function bodies are parsed, for a skipped one does not count as a definition, but templates in them are not
# instantiated; after a header that is missing the parser goes on.
_INCOMPLETE, _FOR_SERIALIZATION, _KEEP_GOING = 0x02, 0x10, 0x200

# glibc's mallopt: how many arenas threads share, and how many bytes free at the end of one it keeps.
_M_ARENA_MAX, _M_TRIM_THRESHOLD = -8, -1
_MISSING = re.compile(r"'(?P<header>[^']+)' file not found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """An error of clang."""

    message: str  # e.g. "unknown type name 'cudaStream_t'"
    missing: str | None  # e.g. "cuda_runtime.h": the header that is not there
    path: str
    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """One translation unit; the cursors live as long as it does."""

    unit: Any  # None for a file that cannot be read
    includes: tuple[str, ...]  # absolute paths of all headers, each once
    complaints: tuple[Complaint, ...]


def require_clang() -> None:
    """Raises ImportError if the library behind the Python package cannot be loaded."""
    try:
        cindex.Index.create()
    except cindex.LibclangError as error:
        raise ImportError(str(error)) from error


@cache
def give_memory_back() -> None:
    """Lets the C library return what parsing in threads took and freed; by itself glibc keeps some 60 MB of it."""
    tune = getattr(ctypes.CDLL(None), "mallopt", None)
    if tune is not None:
        tune(_M_ARENA_MAX, 2)
        tune(_M_TRIM_THRESHOLD, 1 << 17)


def parse(path: Path, flags: Sequence[str], text: str | None = None) -> Parsed:
    """Parses `path`, or `text` under that name. Safe to call from several threads at once.

    What a precompiled header declares is known to the parser but not among the cursors.
    """
    unsaved = [] if text is None else [(str(path), text)]
    args = [*flags, *_builtin_headers()]
    options = _INCOMPLETE | _KEEP_GOING
    try:
        unit = cindex.Index.create(excludeDecls=True).parse(
            str(path), args=args, unsaved_files=unsaved, options=options
        )
    except cindex.TranslationUnitLoadError:
        unread = Complaint(message="this file cannot be read", missing=None, path=str(path), line=1, column=1)
        return Parsed(unit=None, includes=(), complaints=(unread,))
    return Parsed(unit=unit, includes=_includes(unit), complaints=tuple(_complaints(unit)))


def remarks(text: str, flags: Sequence[str]) -> tuple[str, ...]:
    """Every warning and error of clang for a source of this text. e.g. "functions.h:9:4: unknown type name 'x'"."""
    source = "remarks.text"  # the language comes from a flag
    unit = cindex.Index.create().parse(source, args=[*flags, *_builtin_headers()], unsaved_files=[(source, text)])
    found = (d for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Warning)
    return tuple(f"{d.location.file}:{d.location.line}:{d.location.column}: {d.spelling}" for d in found)


def keywords_in(text: str, flags: Sequence[str]) -> tuple[str, ...]:
    """The tokens of `text` that are keywords to clang."""
    source = "keywords.text"  # the language comes from a flag
    unit = cindex.Index.create().parse(source, args=list(flags), unsaved_files=[(source, text)])
    tokens = unit.get_tokens(extent=unit.cursor.extent)
    return tuple(token.spelling for token in tokens if token.kind == cindex.TokenKind.KEYWORD)


# For a precompiled header that has errors, when it is made and when it is loaded.
WITH_ERRORS = ("-Xclang", "-fallow-pch-with-compiler-errors")


def precompile(text: str, flags: Sequence[str], target: Path) -> Parsed | None:
    """Writes the headers that `text` includes to `target`, ready to be loaded with -include-pch.

    None if clang has any complaint, but for headers that are missing and what follows from it.
    """
    name = str(target.with_suffix(".text"))  # no name that a header has, for it would include itself
    args = [*flags, *WITH_ERRORS, "-x", "c++-header", *_builtin_headers()]
    options = _INCOMPLETE | _FOR_SERIALIZATION | _KEEP_GOING
    try:
        unit = cindex.Index.create().parse(name, args=args, unsaved_files=[(name, text)], options=options)
        complaints = tuple(_complaints(unit))
        if complaints and not any(c.missing is not None for c in complaints):
            return None
        unit.save(str(target))
    except (cindex.TranslationUnitLoadError, cindex.TranslationUnitSaveError):
        return None
    return Parsed(unit=unit, includes=_includes(unit), complaints=complaints)


def _includes(unit: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(Path(i.include.name).resolve()) for i in unit.get_includes()))


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


def members_in(parsed: Parsed, namespace: str, nested: bool = False, outside: bool = False) -> tuple[Any, ...]:
    """Cursors of the functions and using declarations in `namespace` ("impl::droplet"; "" for C), wherever they stand.

    With `nested` those of the namespaces inside it too, with `outside` those of no namespace. An inline namespace
    counts as its parent; an unnamed one does not.
    """
    wanted = _Wanted(path=tuple(namespace.split("::")) if namespace else (), nested=nested, outside=outside)
    return () if parsed.unit is None else tuple(_members(parsed.unit.cursor, wanted))


def functions_in(parsed: Parsed, namespace: str) -> Iterator[Any]:
    """Cursors of the functions declared in `namespace`."""
    return functions_of(members_in(parsed, namespace))


def functions_of(members: Iterable[Any]) -> Iterator[Any]:
    """Cursors of functions. A specialization of a template is none: it is called by its arguments."""
    for cursor in members:
        specialized = cindex.conf.lib.clang_getSpecializedCursorTemplate(cursor)
        if cursor.kind == cindex.CursorKind.FUNCTION_DECL and specialized is None:
            yield cursor


def reexports_of(members: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """A using declaration and a function that it names, for each of them."""
    library = cindex.conf.lib
    for cursor in members:
        if cursor.kind == cindex.CursorKind.USING_DECLARATION:
            for named in cursor.get_children():
                if named.kind == cindex.CursorKind.OVERLOADED_DECL_REF:
                    for position in range(library.clang_getNumOverloadedDecls(named)):
                        yield cursor, library.clang_getOverloadedDecl(named, position)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A namespace that is searched."""

    path: tuple[str, ...]  # e.g. ("impl", "droplet")
    nested: bool  # with the namespaces inside it
    outside: bool  # and what stands in no namespace

    def leads_to(self, path: tuple[str, ...]) -> bool:
        """Whether members may stand in the namespace `path` or deeper."""
        return path == self.path[: len(path)] or self.holds(path)

    def holds(self, path: tuple[str, ...]) -> bool:
        return (
            path == self.path
            or (self.outside and path == ())
            or (self.nested and path[: len(self.path)] == self.path and "" not in path)
        )


def _members(scope: Any, wanted: _Wanted) -> Iterator[Any]:
    """Functions and using declarations."""
    for cursor in scope.get_children():
        kind = cursor.kind
        if kind in (cindex.CursorKind.FUNCTION_DECL, cindex.CursorKind.USING_DECLARATION):
            if wanted.holds(namespace_of(cursor)):
                yield cursor
        elif kind in _SCOPES or (
            kind == cindex.CursorKind.NAMESPACE and wanted.leads_to(namespace_of(cursor, itself=True))
        ):
            yield from _members(cursor, wanted)


def namespace_of(cursor: Any, itself: bool = False, inline: bool = False) -> tuple[str, ...]:
    """The namespaces around a cursor, the outermost first; an unnamed one is an empty string.

    Inline ones stand in the name of the symbol, and with `inline` in what is returned.
    """
    names: list[str] = []
    scope = cursor if itself else cursor.semantic_parent
    while scope is not None and scope.kind != cindex.CursorKind.TRANSLATION_UNIT:
        if scope.kind not in _SCOPES and (inline or not cindex.conf.lib.clang_Cursor_isInlineNamespace(scope)):
            names.append(scope.spelling if scope.kind == cindex.CursorKind.NAMESPACE else "(class)")
        scope = scope.semantic_parent
    return tuple(reversed(names))


def declarations_in(parsed: Parsed, paths: Iterable[Path]) -> Iterator[Any]:
    """Cursors of all that these files declare outside of namespaces, `extern "C"` or not, in the order of the unit."""
    wanted = {str(path.resolve()) for path in paths}
    if parsed.unit is not None:
        for cursor in _unwrapped(parsed.unit.cursor):
            file = cursor.location.file
            if file is not None and str(Path(file.name).resolve()) in wanted:
                yield cursor


def _unwrapped(scope: Any) -> Iterator[Any]:
    for cursor in scope.get_children():
        if cursor.kind in _SCOPES:
            yield from _unwrapped(cursor)
        else:
            yield cursor


def is_weak(cursor: Any) -> bool:
    """Whether a function is declared weak, by whatever macro: cursors do not say so, but clang's own print does."""
    library = _printing_library()
    text = library.clang_getCursorPrettyPrinted(cursor, library.clang_getCursorPrintingPolicy(cursor))
    return "__attribute__((weak))" in text


@cache
def _printing_library() -> Any:
    """libclang with two functions that its Python package leaves out."""
    library = cindex.conf.lib
    library.clang_getCursorPrintingPolicy.argtypes = [cindex.Cursor]
    library.clang_getCursorPrintingPolicy.restype = ctypes.c_void_p
    library.clang_getCursorPrettyPrinted.argtypes = [cindex.Cursor, ctypes.c_void_p]
    library.clang_getCursorPrettyPrinted.restype = cindex._CXString
    library.clang_getCursorPrettyPrinted.errcheck = cindex._CXString.from_result
    return library


def is_external(cursor: Any) -> bool:
    """Whether other files can call the function."""
    return bool(cursor.linkage == cindex.LinkageKind.EXTERNAL)


def is_inline(cursor: Any) -> bool:
    """Whether the function is inline or constexpr: a file that does not call it has no code for it."""
    return bool(cindex.conf.lib.clang_Cursor_isFunctionInlined(cursor))


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


def virtual_functions(parsed: Parsed, name: str) -> tuple[str, ...]:
    """The virtual functions of the class `name` ("c10::Allocator") and of its bases, each once, in order.

    e.g. "allocate(size_t) = 0", a pure one; a destructor is none.
    """
    found: dict[str, None] = {}
    waiting = [] if parsed.unit is None else list(_classes(parsed.unit.cursor, tuple(name.split("::"))))
    while waiting:
        cursor = waiting.pop(0)
        for child in cursor.get_children():
            if child.kind == cindex.CursorKind.CXX_BASE_SPECIFIER:
                waiting.append(child.type.get_declaration())
            elif child.kind == cindex.CursorKind.CXX_METHOD and child.is_virtual_method():
                pure = " = 0" if child.is_pure_virtual_method() else ""
                found[f"{child.displayname}{' const' if child.is_const_method() else ''}{pure}"] = None
    return tuple(found)


def _classes(scope: Any, path: tuple[str, ...]) -> Iterator[Any]:
    """Cursors of the definitions of the class at `path`."""
    for cursor in scope.get_children():
        if cursor.kind in _SCOPES:
            yield from _classes(cursor, path)
        elif cursor.spelling == path[0]:
            if cursor.kind == cindex.CursorKind.NAMESPACE and len(path) > 1:
                yield from _classes(cursor, path[1:])
            elif len(path) == 1 and cursor.is_definition():
                yield cursor

"""Reads C or C++ headers into an Interface: every function, enum, struct and type name, with its place."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from clang.cindex import CursorKind, TypeKind

from diopigen.diagnostics import Diagnostics, Span
from diopigen.model.interface import (
    CType,
    DeclaredEnum,
    DeclaredEnumerator,
    DeclaredField,
    DeclaredFunction,
    DeclaredParam,
    DeclaredStruct,
    DeclaredType,
    Interface,
)
from diopigen.source.cpp.clang import Parsed, declarations_in, is_weak, parse

Shown = Callable[[Path], str]  # a path as messages show it

_DIRECTION = re.compile(r"[@\\]param\s*\[(?P<direction>[\w, ]+)\]\s+(?P<name>\w+)")

_ARRAYS = (TypeKind.CONSTANTARRAY, TypeKind.INCOMPLETEARRAY, TypeKind.VARIABLEARRAY)

# The established headers are C++ in all but name, so that is tried first.
_LANGUAGES = (("c++", "c++17"), ("c", "c11"))


def read_interface(
    paths: Sequence[Path], include_dirs: Sequence[Path], shown: Shown, diagnostics: Diagnostics
) -> Interface | None:
    """What `paths` themselves declare, not what they include; None after a diagnostic if clang has any complaint.

    A header that is not read whole still shows every function, with wrong types: `bool` as `int`, for instance.
    """
    text = "".join(f'#include "{path.resolve()}"\n' for path in paths)
    complaints: tuple[Any, ...] = ()
    for language, standard in _LANGUAGES:
        flags = ["-x", language, f"-std={standard}", *(f"-I{folder}" for folder in include_dirs)]
        parsed = parse(paths[0].parent / "all_headers", flags, text)
        if not parsed.complaints:
            return _Reader(parsed, paths, shown).interface()
        complaints = complaints or parsed.complaints
    for complaint in complaints:
        span = Span(path=shown(Path(complaint.path)), line=complaint.line, column=complaint.column)
        hint = "name its folder with --include" if complaint.missing is not None else None
        diagnostics.error("broken-header", f"clang cannot read this header: {complaint.message}", span, hint)
    return None


class _Reader:
    """One translation unit; knows the names that its structs and enums go by."""

    def __init__(self, parsed: Parsed, paths: Sequence[Path], shown: Shown) -> None:
        self.cursors = tuple(declarations_in(parsed, paths))
        self.names = dict(_names_by_declaration(declarations_in(parsed, [Path(i) for i in parsed.includes])))
        self.shown = shown

    def interface(self) -> Interface:
        return Interface(
            functions=tuple(dict(self._functions()).values()),
            enums=tuple(self._enum(c) for c in self._definitions(CursorKind.ENUM_DECL)),
            structs=tuple(self._struct(c) for c in self._definitions(CursorKind.STRUCT_DECL)),
            types=tuple(self._types()),
        )

    # -- declarations ---------------------------------------------------------------------------------------

    def _functions(self) -> Iterator[tuple[str, DeclaredFunction]]:
        for cursor in self.cursors:
            if cursor.kind == CursorKind.FUNCTION_DECL:
                yield cursor.spelling, self._function(cursor)

    def _function(self, cursor: Any) -> DeclaredFunction:
        params = tuple(
            DeclaredParam(type=self._passed(p.type), name=p.spelling, span=self._extent(p))
            for p in cursor.get_arguments()
        )
        return DeclaredFunction(
            name=cursor.spelling,
            header=_header(cursor),
            returns=self._type(cursor.result_type),
            params=params,
            weak=is_weak(cursor),
            c_linkage=cursor.mangled_name == cursor.spelling,
            variadic=cursor.type.kind == TypeKind.FUNCTIONPROTO and cursor.type.is_function_variadic(),
            span=self._name(cursor),
            doc=" ".join((cursor.brief_comment or "").split()),
            directions=tuple(_directions(cursor.raw_comment or "")),
        )

    def _definitions(self, kind: Any) -> Iterator[Any]:
        return (c for c in self.cursors if c.kind == kind and c.is_definition())

    def _enum(self, cursor: Any) -> DeclaredEnum:
        return DeclaredEnum(
            name=self._called(cursor),
            header=_header(cursor),
            size=cursor.type.get_size(),
            enumerators=tuple(
                DeclaredEnumerator(name=c.spelling, value=c.enum_value, span=self._extent(c))
                for c in cursor.get_children()
                if c.kind == CursorKind.ENUM_CONSTANT_DECL
            ),
            span=self._name(cursor),
        )

    def _struct(self, cursor: Any) -> DeclaredStruct:
        return DeclaredStruct(
            name=self._called(cursor),
            header=_header(cursor),
            size=cursor.type.get_size(),
            fields=tuple(self._fields(cursor.type, 0)),
            span=self._name(cursor),
        )

    def _fields(self, record: Any, base: int) -> Iterator[DeclaredField]:
        for field in record.get_fields():
            offset = base + field.get_field_offsetof() // 8
            if field.is_anonymous():
                yield from self._fields(field.type, offset)
            else:
                yield DeclaredField(
                    type=self._type(field.type), name=field.spelling, offset=offset, span=self._extent(field)
                )

    def _types(self) -> Iterator[DeclaredType]:
        defined = (CursorKind.ENUM_DECL, CursorKind.STRUCT_DECL)
        for cursor in self.cursors:
            if cursor.kind != CursorKind.TYPEDEF_DECL:
                continue
            meant = cursor.underlying_typedef_type
            if meant.get_declaration().kind in defined and meant.get_declaration().is_definition():
                continue  # the struct or enum itself is compared
            yield DeclaredType(
                name=cursor.spelling, header=_header(cursor), type=self._type(meant), span=self._name(cursor)
            )

    # -- types ----------------------------------------------------------------------------------------------

    def _type(self, type_: Any) -> CType:
        return CType(spelled=_plain(type_.spelling), resolved=self._resolved(type_, top=True))

    def _passed(self, type_: Any) -> CType:
        """The type of a parameter: an array is the pointer that C makes of it."""
        if type_.kind not in _ARRAYS:
            return self._type(type_)
        element = self._type(type_.element_type)
        inside = self._resolved(type_.element_type)
        star = "(*)" if type_.element_type.kind in _ARRAYS else "*"
        head, bracket, rest = element.spelled.partition("[")
        return CType(spelled=f"{head}{' ' if bracket else ''}{star}{bracket}{rest}", resolved=f"{inside}*")

    def _resolved(self, type_: Any, top: bool = False) -> str:
        """The type without typedefs, with structs and enums by the names that users know them by."""
        meant = type_.get_canonical()
        const = "const " if meant.is_const_qualified() and not top else ""
        match meant.kind:
            case TypeKind.POINTER:
                inside = self._resolved(meant.get_pointee())
                return f"{inside}*{' const' if const else ''}"
            case TypeKind.FUNCTIONPROTO | TypeKind.FUNCTIONNOPROTO:
                taken = meant.argument_types() if meant.kind == TypeKind.FUNCTIONPROTO else ()
                return f"{self._resolved(meant.get_result())}({', '.join(self._resolved(t) for t in taken)})"
            case TypeKind.CONSTANTARRAY:
                return f"{self._resolved(meant.element_type)}[{meant.element_count}]"
            case TypeKind.RECORD | TypeKind.ENUM:
                return const + self._called(meant.get_declaration())
            case _:
                return _plain(meant.spelling.removeprefix("const ") if top else meant.spelling)

    def _called(self, cursor: Any) -> str:
        return str(self.names.get(cursor.hash, cursor.spelling))

    # -- places ---------------------------------------------------------------------------------------------

    def _name(self, cursor: Any) -> Span:
        place = cursor.location
        return self._span(place, len(cursor.spelling))

    def _extent(self, cursor: Any) -> Span:
        start, end = cursor.extent.start, cursor.extent.end
        if start.file is None or end.line != start.line:
            return self._span(cursor.location, len(cursor.spelling))
        return self._span(start, end.column - start.column)

    def _span(self, place: Any, length: int) -> Span:
        path = self.shown(Path(place.file.name))
        return Span(path=path, line=place.line, column=place.column, length=max(1, length))


def _names_by_declaration(cursors: Iterator[Any]) -> Iterator[tuple[int, str]]:
    """The first type name of each struct and enum that has one: `diopiSize_t` of `struct diopiSize_`."""
    seen: list[int] = []
    for cursor in cursors:
        if cursor.kind == CursorKind.TYPEDEF_DECL:
            declaration = cursor.underlying_typedef_type.get_declaration()
            if declaration.kind in (CursorKind.ENUM_DECL, CursorKind.STRUCT_DECL) and declaration.hash not in seen:
                seen.append(declaration.hash)
                yield declaration.hash, cursor.spelling


def _directions(comment: str) -> Iterator[tuple[str, str]]:
    """What a Doxygen comment says of its parameters: `@param[in,out] x` gives ("x", "inout")."""
    for match in _DIRECTION.finditer(comment):
        yield match["name"], "".join(word for word in ("in", "out") if word in match["direction"])


def _header(cursor: Any) -> str:
    return Path(cursor.location.file.name).name


def _plain(spelling: str) -> str:
    """As our schemas write it: `bool` and not `_Bool`, no blank before a star."""
    return spelling.replace("_Bool", "bool").replace(" *", "*")

"""The saved form of an Interface: a line of JSON for each fact, so that a finding points at the line of its own."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeVar, assert_never

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

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

_VERSION = 1


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Head(_Line):
    record: Literal["diopi interface"]
    version: Literal[1]


class _TypeLine(_Line):
    type: str
    header: str
    spelled: str
    resolved: str


class _EnumLine(_Line):
    enum: str
    header: str
    bytes: int


class _EnumeratorLine(_Line):
    enumerator: str  # of the enum before
    value: int


class _StructLine(_Line):
    struct: str
    header: str
    bytes: int


class _MemberLine(_Line):
    member: str  # of the struct before
    offset: int
    spelled: str
    resolved: str


class _FunctionLine(_Line):
    function: str
    header: str
    weak: bool
    c_linkage: bool
    spelled: str  # what it returns
    resolved: str


class _ParamLine(_Line):
    param: str  # of the function before; empty if it has no name
    spelled: str
    resolved: str


_AnyLine = _Head | _TypeLine | _EnumLine | _EnumeratorLine | _StructLine | _MemberLine | _FunctionLine | _ParamLine
_LINES: TypeAdapter[_AnyLine] = TypeAdapter(_AnyLine)


def record_text(interface: Interface) -> str:
    """The record of `interface`; the same interface gives the same bytes."""
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in _lines(interface))


def _lines(interface: Interface) -> Iterator[Mapping[str, object]]:
    yield {"record": "diopi interface", "version": _VERSION}
    for type_ in interface.types:
        yield {"type": type_.name, "header": type_.header, **_spellings(type_.type)}
    for enum in interface.enums:
        yield {"enum": enum.name, "header": enum.header, "bytes": enum.size}
        yield from ({"enumerator": e.name, "value": e.value} for e in enum.enumerators)
    for struct in interface.structs:
        yield {"struct": struct.name, "header": struct.header, "bytes": struct.size}
        yield from ({"member": f.name, "offset": f.offset, **_spellings(f.type)} for f in struct.fields)
    for function in interface.functions:
        yield {
            "function": function.name,
            "header": function.header,
            "weak": function.weak,
            "c_linkage": function.c_linkage,
            **_spellings(function.returns),
        }
        yield from ({"param": p.name, **_spellings(p.type)} for p in function.params)


def _spellings(type_: CType) -> dict[str, str]:
    return {"spelled": type_.spelled, "resolved": type_.resolved}


def is_record(path: Path) -> bool:
    """Whether a file is a record rather than a header: no header begins with a brace."""
    with path.open("rb") as file:
        return file.read(1) == b"{"


def read_record(path: Path, shown: str, diagnostics: Diagnostics) -> Interface | None:
    """The interface that `record_text` wrote, every span on its line; None after a diagnostic."""
    reader = _Reader()
    for number, text in enumerate(path.read_bytes().splitlines(), start=1):
        span = Span(path=shown, line=number, column=1, length=len(text))
        try:
            reader.read(_LINES.validate_python(json.loads(text)), span)
        except ValueError as error:
            message = f"this line is not a record: {_reason(error)}"
            diagnostics.error("broken-record", message, span, "save it again with 'diopigen compat --save'")
            return None
    return reader.interface()


def _reason(error: ValueError) -> str:
    match error:
        case ValidationError():
            return "it has other properties"
        case json.JSONDecodeError():
            return f"{error.msg}, column {error.colno}"
        case UnicodeDecodeError():
            return "it is not UTF-8 text"
        case _:
            return str(error)


_Declared = TypeVar("_Declared", DeclaredEnum, DeclaredStruct, DeclaredFunction)


@dataclass(slots=True)
class _Reader:
    """Goes through the lines; what belongs to the declaration before is added to that."""

    types: list[DeclaredType] = field(default_factory=list)
    enums: list[DeclaredEnum] = field(default_factory=list)
    structs: list[DeclaredStruct] = field(default_factory=list)
    functions: list[DeclaredFunction] = field(default_factory=list)

    def interface(self) -> Interface:
        return Interface(
            functions=tuple(self.functions),
            enums=tuple(self.enums),
            structs=tuple(self.structs),
            types=tuple(self.types),
        )

    def read(self, line: _AnyLine, span: Span) -> None:
        """Raises ValueError for a part without a whole before it."""
        match line:
            case _Head():
                pass
            case _TypeLine():
                self.types.append(DeclaredType(name=line.type, header=line.header, type=_type(line), span=span))
            case _EnumLine():
                self.enums.append(
                    DeclaredEnum(name=line.enum, header=line.header, size=line.bytes, enumerators=(), span=span)
                )
            case _StructLine():
                self.structs.append(
                    DeclaredStruct(name=line.struct, header=line.header, size=line.bytes, fields=(), span=span)
                )
            case _FunctionLine():
                self.functions.append(_function(line, span))
            case _EnumeratorLine() | _MemberLine() | _ParamLine():
                self._add_part(line, span)
            case other:
                assert_never(other)

    def _add_part(self, line: _EnumeratorLine | _MemberLine | _ParamLine, span: Span) -> None:
        match line:
            case _EnumeratorLine():
                value = DeclaredEnumerator(name=line.enumerator, value=line.value, span=span)
                _extend(self.enums, lambda enum: replace(enum, enumerators=(*enum.enumerators, value)))
            case _MemberLine():
                member = DeclaredField(type=_type(line), name=line.member, offset=line.offset, span=span)
                _extend(self.structs, lambda struct: replace(struct, fields=(*struct.fields, member)))
            case _ParamLine():
                param = DeclaredParam(type=_type(line), name=line.param, span=span)
                _extend(self.functions, lambda function: replace(function, params=(*function.params, param)))


def _extend(declared: list[_Declared], with_part: Callable[[_Declared], _Declared]) -> None:
    if not declared:
        raise ValueError("no declaration precedes it")
    declared[-1] = with_part(declared[-1])


def _type(line: _TypeLine | _MemberLine | _FunctionLine | _ParamLine) -> CType:
    return CType(spelled=line.spelled, resolved=line.resolved)


def _function(line: _FunctionLine, span: Span) -> DeclaredFunction:
    return DeclaredFunction(
        name=line.function,
        header=line.header,
        returns=_type(line),
        params=(),
        weak=line.weak,
        c_linkage=line.c_linkage,
        span=span,
    )

"""The saved form of an Interface: a line of JSON for each declaration, so that a finding can point at its line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

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


class _FunctionLine(_Line):
    function: str
    header: str
    returns: list[str] = Field(min_length=2, max_length=2)  # as spelled, resolved
    weak: bool
    c_linkage: bool
    params: list[tuple[str, str, str]]  # as spelled, resolved, name


class _EnumLine(_Line):
    enum: str
    header: str
    bytes: int
    values: dict[str, int]


class _StructLine(_Line):
    struct: str
    header: str
    bytes: int
    fields: list[tuple[str, str, str, int]]  # as spelled, resolved, name, offset


class _TypeLine(_Line):
    type: str
    header: str
    means: list[str] = Field(min_length=2, max_length=2)


_HEAD = TypeAdapter(_Head)
_LINES: TypeAdapter[Any] = TypeAdapter(_FunctionLine | _EnumLine | _StructLine | _TypeLine)


def record_text(interface: Interface) -> str:
    """The record of `interface`; the same interface gives the same bytes."""
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in _lines(interface))


def _lines(interface: Interface) -> Iterator[dict[str, object]]:
    yield {"record": "diopi interface", "version": _VERSION}
    for type_ in interface.types:
        yield {"type": type_.name, "header": type_.header, "means": _pair(type_.type)}
    for enum in interface.enums:
        values = {e.name: e.value for e in enum.enumerators}
        yield {"enum": enum.name, "header": enum.header, "bytes": enum.size, "values": values}
    for struct in interface.structs:
        fields = [[*_pair(f.type), f.name, f.offset] for f in struct.fields]
        yield {"struct": struct.name, "header": struct.header, "bytes": struct.size, "fields": fields}
    for function in interface.functions:
        yield {
            "function": function.name,
            "header": function.header,
            "returns": _pair(function.returns),
            "weak": function.weak,
            "c_linkage": function.c_linkage,
            "params": [[*_pair(p.type), p.name] for p in function.params],
        }


def _pair(type_: CType) -> list[str]:
    return [type_.spelled, type_.resolved]


def is_record(path: Path) -> bool:
    """Whether a file is a record rather than a header: no header begins with a brace."""
    with path.open("rb") as file:
        return file.read(1) == b"{"


def read_record(path: Path, shown: str, diagnostics: Diagnostics) -> Interface | None:
    """The interface that `record_text` wrote, every span on its line; None after a diagnostic."""
    lines = []
    for number, text in enumerate(path.read_bytes().splitlines(), start=1):
        span = Span(path=shown, line=number, column=1, length=len(text))
        try:
            lines.append((_HEAD if number == 1 else _LINES).validate_python(_strictly(json.loads(text))))
        except ValueError as error:
            message = f"this line is not one of a record: {_reason(error)}"
            diagnostics.error("broken-record", message, span, "save it again with 'diopigen compat --save'")
            return None
    spans = [Span(path=shown, line=number, column=1, length=1) for number in range(1, len(lines) + 1)]
    placed = list(zip(lines, spans, strict=True))
    return Interface(
        functions=tuple(_function(line, span) for line, span in placed if isinstance(line, _FunctionLine)),
        enums=tuple(_enum(line, span) for line, span in placed if isinstance(line, _EnumLine)),
        structs=tuple(_struct(line, span) for line, span in placed if isinstance(line, _StructLine)),
        types=tuple(
            DeclaredType(name=line.type, header=line.header, type=_type(line.means), span=span)
            for line, span in placed
            if isinstance(line, _TypeLine)
        ),
    )


def _strictly(value: Any) -> Any:
    """JSON's lists as the tuples that the strict models ask for."""
    if not isinstance(value, dict):
        return value
    return {
        key: [tuple(item) if isinstance(item, list) else item for item in entry] if isinstance(entry, list) else entry
        for key, entry in value.items()
    }


def _reason(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        return "it has other properties"
    return f"{error.msg}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else "it is not UTF-8 text"


def _type(pair: Any) -> CType:
    return CType(spelled=pair[0], resolved=pair[1])


def _function(line: _FunctionLine, span: Span) -> DeclaredFunction:
    return DeclaredFunction(
        name=line.function,
        header=line.header,
        returns=_type(line.returns),
        params=tuple(DeclaredParam(type=_type(p[:2]), name=p[2], span=span) for p in line.params),
        weak=line.weak,
        c_linkage=line.c_linkage,
        span=span,
    )


def _enum(line: _EnumLine, span: Span) -> DeclaredEnum:
    enumerators = tuple(DeclaredEnumerator(name=n, value=v, span=span) for n, v in line.values.items())
    return DeclaredEnum(name=line.enum, header=line.header, size=line.bytes, enumerators=enumerators, span=span)


def _struct(line: _StructLine, span: Span) -> DeclaredStruct:
    fields = tuple(DeclaredField(type=_type(f[:2]), name=f[2], offset=f[3], span=span) for f in line.fields)
    return DeclaredStruct(name=line.struct, header=line.header, size=line.bytes, fields=fields, span=span)

"""What the header templates lay out: every declaration already spelled."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from diopigen.c_spelling import c_signature, c_text
from diopigen.model.op import Function, Param, Role
from diopigen.model.program import Program
from diopigen.model.runtime import CFunction, CParam, Enum, FunctionType, TableEntry
from diopigen.model.type import TensorType
from diopigen.targets.cpp.lines import WIDTH, folded
from diopigen.targets.header.abi import AbiGroup, abi_groups, abi_hash, hash_macro
from diopigen.targets.header.dtypes import MacroList, dtype_lists
from diopigen.text import wrapped
from diopigen.vocabulary.dtype import DType


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    comment: tuple[str, ...]  # Doxygen lines; an attribute may follow the last
    text: str  # e.g. "DIOPI_API diopiError_t diopiRelu(...);"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    text: str  # e.g. "diopiSuccess = 0,"
    comment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EnumView:
    name: str
    comment: tuple[str, ...]
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderView:
    source: str  # e.g. "schemas/runtime.yaml"
    doc: str
    guard: str  # e.g. "DIOPI_FUNCTIONS_H_"
    includes: tuple[str, ...]  # e.g. ("diopi/diopirt.h",)
    version: tuple[int, int, int]
    hash_name: str  # e.g. "DIOPI_ABI_FUNCTIONS_HASH"
    hash: str  # e.g. "0x1234...ULL"
    table_version: int | None
    enums: tuple[EnumView, ...]
    types: tuple[Declaration, ...]
    entries: tuple[Declaration, ...]
    declarations: tuple[Declaration, ...]
    dtypes: tuple[DType, ...] = ()
    groups: tuple[AbiGroup, ...] = ()
    lists: tuple[MacroList, ...] = ()


def abi_view(program: Program, headers: tuple[str, ...]) -> HeaderView:
    """The view of abi.h, which speaks of all other headers; `headers` are those of operators."""
    doc = "The ABI record: what both sides compare when a vendor's library is loaded."
    includes = ("diopi/device.h", "diopi/collectives.h", *(f"diopi/{name}.h" for name in headers))
    view = header_view(program, "abi", doc, "schemas/runtime.yaml", includes)
    return replace(view, groups=abi_groups(program.runtime, headers))


def dtypes_view(program: Program) -> HeaderView:
    """The view of dtypes.h."""
    doc = "The element types of the contract, for code that goes through all of a kind: `DIOPI_FOR_EACH_DTYPE(_)`."
    return replace(
        header_view(program, "dtypes", doc, "schemas/dtypes.yaml", ()),
        lists=dtype_lists(program.dtypes),
    )


def header_view(
    program: Program,
    name: str,
    doc: str,
    source: str,
    includes: tuple[str, ...],
    functions: Iterable[Function] = (),
    rest: Iterable[CFunction] = (),
) -> HeaderView:
    """The view of one header; what it does not contain is empty."""
    runtime = program.runtime
    declarations = tuple(_runtime_function(f) for f in rest) + operators(functions)
    enums = tuple(_enum(e) for e in runtime.enums if e.header == name)
    types = tuple(_function_type(t) for t in runtime.function_types) if name == "diopi_register" else ()
    table = next((t for t in runtime.tables if t.name == name), None)
    entries = () if table is None else tuple(_entry(e) for e in table.entries)
    facts = [d.text for d in (*declarations, *types, *entries)] + [m.text for e in enums for m in e.members]
    return HeaderView(
        source=source,
        doc=doc,
        guard=f"DIOPI_{name.upper()}_H_",
        includes=includes,
        version=runtime.version,
        hash_name=hash_macro(name),
        hash=abi_hash(facts),
        table_version=None if table is None else table.version,
        enums=enums,
        types=types,
        entries=entries,
        declarations=declarations,
        dtypes=program.dtypes.types if name == "diopirt_ext" else (),
    )


def _doxygen(*texts: str, indent: int = 0) -> tuple[str, ...]:
    paragraphs = tuple(map(_unclosed, texts))
    if len(paragraphs) == 1 and len(paragraphs[0]) <= WIDTH - indent - 12:
        return (f"/** {paragraphs[0]} */",)
    lines = ["/**"]
    for paragraph in paragraphs:
        lines += wrapped(paragraph, WIDTH - indent, " * ")
    return (*lines, " */")


def _unclosed(text: str) -> str:
    """What a schema says must neither end the comment nor seem to begin another."""
    return " ".join(text.replace("*/", "* /").replace("/*", "/ *").splitlines())


def operators(functions: Iterable[Function]) -> tuple[Declaration, ...]:
    """The declarations of functions of operators."""
    return tuple(map(_operator, functions))


def _operator(function: Function) -> Declaration:
    paragraphs = [_brief(function)]
    if function.math is not None:
        paragraphs.append(f"\\f$ {' '.join(function.math.split())} \\f$")
    paragraphs += [_parameter(param) for param in function.params]
    paragraphs += [] if function.deprecated is None else [f"@deprecated Use {function.deprecated}."]
    comment = _doxygen(*paragraphs)
    if function.deprecated is not None:
        # Programs that read headers line by line take a line that begins with DIOPI for a declaration.
        comment = (*comment[:-1], f"{comment[-1]} DIOPI_DEPRECATED({_ascii_text(f'use {function.deprecated}')})")
    return Declaration(comment=comment, text="\n".join(folded(f"DIOPI_API {c_signature(function)};")))


def _ascii_text(text: str) -> str:
    """A C string literal; other characters than printable ASCII cannot stand in the text of an attribute."""
    return c_text("".join(c if c.isascii() and c.isprintable() else "?" for c in text))


def _brief(function: Function) -> str:
    return f"{function.doc} In place." if function.form.inplace else function.doc


_DIRECTION = {
    Role.IN: "in",
    Role.OUT: "out",
    Role.INOUT: "in,out",
    Role.CALLEE_OUT: "out",
    Role.HOST_OUT: "out",
}


def _parameter(param: Param) -> str:
    text = f"@param[{_DIRECTION[param.role]}] {param.name} `{param.type}`"
    notes = []
    if param.shape is not None:
        notes.append(f"the shape is `{param.shape}`")
    if param.role is Role.CALLEE_OUT:
        notes.append("allocated by the function")
    if param.role is Role.HOST_OUT:
        notes.append("in host memory")
    if isinstance(param.type, TensorType) and param.type.optional:
        notes.append("may be null")
    if param.has_default and param.default is not None:
        notes.append(f"PyTorch's default is {_c_literal(param.default)}")
    return text + (f": {', '.join(notes)}" if notes else "")


def _c_literal(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "{" + ", ".join(_c_literal(item) for item in value) + "}"
    return f'"{value}"' if value == "" else str(value)


def _runtime_function(function: CFunction) -> Declaration:
    text = f"{function.linkage} {function.returns} {function.name}({_c_params(function.params)});"
    return Declaration(comment=_doxygen(function.doc), text="\n".join(folded(text)))


def _c_params(params: tuple[CParam, ...]) -> str:
    return ", ".join(f"{p.type} {p.name}".strip() for p in params) or "void"


def _enum(enum: Enum) -> EnumView:
    return EnumView(
        name=enum.name,
        comment=_doxygen(enum.doc),
        members=tuple(
            Member(text=f"{e.name} = {e.value},", comment=f"/**< {_unclosed(e.doc)} */") for e in enum.enumerators
        ),
    )


def _function_type(type_: FunctionType) -> Declaration:
    text = f"typedef {type_.returns} (*{type_.name})({_c_params(type_.params)});"
    return Declaration(comment=_doxygen(type_.doc), text="\n".join(folded(text)))


def _entry(entry: TableEntry) -> Declaration:
    plain = f"{entry.type} {entry.name};"
    text = plain if entry.type is not None else f"{entry.returns} (*{entry.name})({_c_params(entry.params)});"
    kind = "Required. " if entry.required else ""
    return Declaration(comment=_doxygen(kind + entry.doc, indent=4), text="\n".join(folded(text, indent=4)))

"""Asks clang whether C and C++ take all that the headers declare; what they refuse is reported where it is written."""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from diopigen.atomic import write_text
from diopigen.c_spelling import c_args
from diopigen.diagnostics import Diagnostics, Span
from diopigen.model.op import Function, Op, Param
from diopigen.model.program import Program
from diopigen.model.runtime import CParam, Runtime
from diopigen.vocabulary.dtype import DType, Kind

_STANDARDS = {
    "C11": ("-x", "c", "-std=c11"),
    "C++11": ("-x", "c++", "-std=c++11"),
    "C++20": ("-x", "c++", "-std=c++20"),
}
_CALM = ("-Wno-everything", "-Werror=visibility", "-ferror-limit=0")
_ELEMENTS = "elements.text"  # the source that asks for them
_KERNELS = ("-x", "c++", "-std=c++17")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of C, with what it stands for."""

    text: str  # e.g. ", int64_t n"
    name: str  # e.g. "diopiAdd"
    place: Callable[[], Span]  # which a complaint alone asks for


class Record:
    """Whether clang took a text before: a file with the text's hash."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.digest = path, hashlib.sha256(text.encode()).hexdigest()

    def is_known(self) -> bool:
        return self.path.is_file() and self.path.read_text(encoding="utf-8") == self.digest

    def keep(self) -> None:
        write_text(self.path, self.digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """An element type that has a type of C++."""

    dtype: DType
    span: Span  # where dtypes.yaml says the type


def check_elements(elements: Sequence[Element], kernels: Path, cache: Path, diagnostics: Diagnostics) -> None:
    """Reports each type that the kernels in folder `kernels` do not know, or that holds other numbers."""
    types = kernels / "core" / "half.h"
    if not elements or not types.is_file():  # a project without portable kernels
        return
    opening = ('#include "half.h"', "#include <type_traits>", "namespace diopi::kernels {")
    text = "\n".join((*opening, *(_stored_as(e.dtype) for e in elements), "}\n"))
    record = Record(cache / "elements.txt", text + types.read_text(encoding="utf-8"))
    if record.is_known():
        return
    from diopigen.source.cpp.clang import parse

    complaints = parse(Path(_ELEMENTS), [*_KERNELS, f"-I{kernels / 'core'}", *_CALM], text).complaints
    lines = {len(opening) + number: element.dtype.name for number, element in enumerate(elements, 1)}
    ours = [c for c in complaints if Path(c.path).name == _ELEMENTS and c.line in lines]
    refused = {lines[c.line]: c.message for c in reversed(ours)}
    if complaints and not ours:  # of a header, e.g. where there is no C++ standard library
        message = f"clang cannot read {types.name}, which has the elements' types of C++: {complaints[0].message}"
        diagnostics.error("not-in-c", message, elements[0].span, "install g++, whose headers it reads")
    for element in elements:
        if element.dtype.name in refused:
            message = f"an element of '{element.dtype.name}' cannot be a '{element.dtype.cpp}' of C++"
            text = f"{message}: {refused[element.dtype.name]}"
            diagnostics.error("not-in-c", text, element.span, "name a type that fits")
    if not complaints:
        record.keep()


def _stored_as(dtype: DType) -> str:
    """A line that compiles where `cpp` is a type that fits."""
    traits = {
        Kind.BOOL: "std::is_same_v<T, bool>",
        Kind.INTEGER: f"std::is_integral_v<T> && std::is_signed_v<T> == {str(dtype.signed).lower()}",
        Kind.FLOAT: "(std::is_floating_point_v<T> || std::is_class_v<T>)",
        Kind.COMPLEX: "std::is_class_v<T>",
    }
    sort = f"{'' if dtype.signed else 'un'}signed {dtype.kind.value}"
    holds = f"sizeof(T) == {dtype.size} && {traits[dtype.kind]}"
    must = f'static_assert({holds}, "{sort} of {dtype.size} bytes");'
    return f"namespace at_{dtype.value} {{ using T = {dtype.cpp}; {must} }}"


def check_declarations(program: Program, opening: str, cache: Path, diagnostics: Diagnostics) -> None:
    """Reports each declaration that clang refuses under one of the standards; `opening` has the types before them."""
    lines = [*_opening(program.runtime, opening)]
    opened = len(lines)
    lines += [*_runtime(program.runtime), *_operators(program)]
    text = "".join(f"{line.text}\n" for line in lines)
    record = Record(cache / "declared.txt", text)
    if record.is_known():
        return
    reported: set[tuple[str, Span]] = set()
    beyond = {line.place(): line for line in lines[opened:] if not line.text.isascii()}
    for span, declared in beyond.items():  # clang takes some of them for white space, and no other compiler does
        character = next(c for c in declared.text if not c.isascii())
        message = f"'{declared.name}' is declared with U+{ord(character):04X}, which is not valid in C"
        diagnostics.error("not-in-c", message, span, "use letters, digits and spaces")
        reported.add((declared.name, span))
    for standard, line, message in _complaints(text):
        owner = lines[line - 1]
        span = owner.place()
        if (owner.name, span) not in reported:
            reported.add((owner.name, span))
            diagnostics.error(
                "not-in-c",
                f"'{owner.name}' cannot be declared in {standard}: {message}",
                span,
                "change the type or the name",
            )
    if not reported:
        record.keep()


def _complaints(text: str) -> Iterator[tuple[str, int, str]]:
    from diopigen.source.cpp.clang import parse

    for standard, flags in _STANDARDS.items():
        for complaint in parse(Path("declared.text"), [*flags, *_CALM], text).complaints:
            yield standard, complaint.line, complaint.message


def _opening(runtime: Runtime, text: str) -> Iterator[Line]:
    """Lines of headers: what an enumerator's line is about is told by its name."""
    spans = {name: enum.span for enum in runtime.enums for name in (enum.name, *(e.name for e in enum.enumerators))}
    whole = runtime.enums[0].span if runtime.enums else Span(path="schemas/runtime.yaml", line=1, column=1)
    for line in text.splitlines():
        name = next((word for word in re.findall(r"\w+", line) if word in spans), "runtime.yaml")
        yield _one(line, name, spans.get(name, whole))


def _runtime(runtime: Runtime) -> Iterator[Line]:
    for type_ in runtime.function_types:
        yield _one(f"typedef {type_.returns} (*{type_.name})({_params(type_.params)});", type_.name, type_.span)
    for function in runtime.functions:
        text = f"{function.linkage} {function.returns} {function.name}({_params(function.params)});"
        yield _one(text, function.name, function.span)
    for table in runtime.tables:
        yield _one(f"typedef struct diopi_{table.name}_entries {{", table.name, runtime.span)
        for entry in table.entries:
            text = (
                f"{entry.type} {entry.name};"
                if entry.type
                else f"{entry.returns} (*{entry.name})({_params(entry.params)});"
            )
            yield _one(text, entry.name, entry.span)
        yield _one(f"}} diopi_{table.name}_entries_t;", table.name, runtime.span)


def _one(text: str, name: str, span: Span) -> Line:
    return Line(text=text, name=name, place=lambda: span)


def _params(params: Sequence[CParam]) -> str:
    return ", ".join(f"{p.type} {p.name}".strip() for p in params) or "void"


def _operators(program: Program) -> Iterator[Line]:
    ops = {op.name: op for op in program.ops}
    for function in program.functions:
        op = ops[function.op]
        begin = f"DIOPI_API diopiError_t {function.symbol}("
        yield Line(text=begin, name=function.symbol, place=partial(_symbol_span, op, function))
        args = c_args(function)
        for arg, end in zip(args, [*"," * (len(args) - 1), ");"], strict=True):
            name = arg.name if arg.param else function.symbol
            yield Line(text=f"{arg}{end}", name=name, place=partial(_type_span, op, function, arg.param))


def _symbol_span(op: Op, function: Function) -> Span:
    path = "backward.name" if function.form.value == "backward" else f"names.{function.form.value}"
    place = op.places.at(path) or (None if function.form.value == "backward" else op.places.at("name"))
    return function.span if place is None else place.span


def _type_span(op: Op, function: Function, param: Param | None) -> Span:
    if param is None:
        return function.span
    path = f"backward.c.{param.name}" if function.form.value == "backward" else f"c.{param.name}"
    place = op.places.at(path)
    return param.span if place is None else place.span

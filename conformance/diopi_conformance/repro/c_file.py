"""A call as a C file that needs only the contract's headers, libc and the libraries."""

import math
import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from diopi_conformance.repro.example import Argument, Example, Expectation, Host, Made, Tensor
from diopi_conformance.repro.python_file import About, Unwritable

_PLAIN = {
    "bool": "bool",
    "count": "int64_t",
    "double": "double",
    "enum": "int",
    "float": "float",
    "int32": "int32_t",
    "int64": "int64_t",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorView:
    """Each field as C text; names of arrays that are not there are NULL."""

    c: str  # ex) "input", "tensors_2"
    name: str  # with its quotes
    dtype: str
    number: int
    role: str
    ndim: int
    sizes: str
    strides: str
    strides_name: str
    offset: int
    elements: int
    before: str
    before_name: str
    count: int
    values: str
    values_name: str
    bounds: str
    bounds_name: str
    choices: str
    choices_name: str
    first: str
    first_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostView:
    c: str
    name: str
    type: str
    actual: str  # the number as int64_t or double
    values: str
    bounds: str
    choices: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CView:
    vendor: str
    symbol: str
    case: str
    reason: str
    file: str
    program: str
    include: str
    runtime: str
    library: str
    seconds: int
    tensors: tuple[TensorView, ...]
    given: int
    allocated: int
    host: tuple[HostView, ...]
    types: str
    declarations: tuple[str, ...]
    arguments: str


def c_view(example: Example, about: About, include: str) -> CView:
    """What the template lays out; `include` is the folder of the contract's headers. Raises Unwritable."""
    room = _Room(example)
    arguments = ["context", *map(room.argument, example.arguments)]
    return CView(
        vendor=_comment(about.vendor),
        symbol=example.symbol,
        case=_comment(about.case),
        reason=_comment(about.reason),
        file=_comment(about.file),
        program=_comment(about.file.removesuffix(".c")),
        include=_comment(include),
        runtime=_string(about.runtime),
        library=_string(about.library),
        seconds=about.seconds,
        tensors=(*map(_tensor, example.tensors), *map(_made, example.made)),
        given=len(example.tensors),
        allocated=len(example.made),
        host=tuple(map(_host, example.host)),
        types=", ".join(["diopiContextHandle_t", *map(_type, example.arguments)]),
        declarations=tuple(room.declarations),
        arguments=", ".join(arguments),
    )


# -- text ----------------------------------------------------------------------------------------------------------


def _comment(text: str) -> str:
    """Fit for a comment: one line of ASCII that does not end it."""
    plain = " ".join(text.encode("ascii", "backslashreplace").decode().split())
    return plain.replace("*/", "* /").replace("/*", "/ *")


def _string(text: str) -> str:
    """A literal; other bytes than plain letters as octal escapes, which three digits end."""
    plain = "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode())
    return f'"{plain}"'


def _name(label: str, used_as: str) -> str:
    """An identifier. ex) "in_tensors_2"."""
    return f"{used_as}_{re.sub(r'[^A-Za-z0-9]+', '_', label).strip('_')}"


def _listed(words: Iterable[str]) -> str:
    text = ", ".join(words)
    if len(text) <= 90:
        return text
    lines = textwrap.wrap(text, 110, initial_indent="    ", subsequent_indent="    ", break_long_words=False)
    return "\n" + "\n".join(lines) + "\n"


def _real(value: float) -> str:
    """Exact, without rounding on the way."""
    if math.isnan(value):
        return "(double)NAN"
    if math.isinf(value):
        return "(double)INFINITY" if value > 0 else "-(double)INFINITY"
    return repr(value)  # Python's shortest text leads back to the same number, in C too


def _whole(value: int) -> str:
    """As int64_t; of uint64 the same bits."""
    signed = value - 2**64 if value >= 2**63 else value
    return "INT64_MIN" if signed == -(2**63) else f"INT64_C({signed})"


# -- tensors -------------------------------------------------------------------------------------------------------


def _tensor(tensor: Tensor) -> TensorView:
    c = _name(tensor.name, "in" if tensor.role == "input" else "out")
    return TensorView(
        c=c,
        name=_string(tensor.name),
        dtype=tensor.dtype,
        number=tensor.number,
        role=tensor.role.upper(),
        ndim=len(tensor.sizes),
        sizes=_listed(map(str, tensor.sizes)) or "0",
        strides=_listed(map(str, tensor.strides)) or "0",
        strides_name=f"{c}_strides",
        offset=tensor.offset,
        elements=tensor.elements,
        before=_listed(f"0x{byte:02x}" for byte in tensor.before),
        before_name=f"{c}_before" if tensor.before else "NULL",
        **_expected(c, tensor.expectation),
    )


def _made(made: Made) -> TensorView:
    c = _name(made.name, "made")
    role = ("MAYBE_ABSENT" if made.optional else "ALLOCATED") if made.present else "ABSENT"
    return TensorView(
        c=c,
        name=_string(made.name),
        dtype=made.dtype,
        number=made.number,
        role=role,
        ndim=len(made.sizes),
        sizes=_listed(map(str, made.sizes)) or "0",
        strides="" if made.strides is None else _listed(map(str, made.strides)) or "0",
        strides_name="NULL" if made.strides is None else f"{c}_strides",
        offset=0,
        elements=0,
        before="",
        before_name="NULL",
        **_expected(c, made.expectation),
    )


def _expected(c: str, expectation: Expectation) -> dict[str, Any]:
    starts = [0]
    for choice in expectation.choices:
        starts.append(starts[-1] + len(choice))
    flat = [number for choice in expectation.choices for number in choice]
    texts = {
        "values": _listed(map(_real, expectation.values)),
        "bounds": _listed(map(_real, expectation.bounds)),
        "choices": _listed(map(_whole, flat)),
        "first": _listed(map(str, starts)) if flat else "",
    }
    names = {f"{name}_name": f"{c}_{name}" if text else "NULL" for name, text in texts.items()}
    return {**texts, **names, "count": len(expectation.choices) or len(expectation.values)}


def _host(host: Host) -> HostView:
    c = _name(host.name, "host")
    kind = "unsigned char" if host.kind == "bool" else _PLAIN[host.kind]
    choices = host.expectation.choices
    return HostView(
        c=c,
        name=_string(host.name),
        type=kind,
        actual=f"({'int64_t' if choices else 'double'}){c}.value",
        values="".join(map(_real, host.expectation.values)),
        bounds="".join(map(_real, host.expectation.bounds)),
        choices=_whole(choices[0][0]) if choices else "",
    )


# -- arguments -----------------------------------------------------------------------------------------------------


def _type(argument: Argument) -> str:
    const = "Const" if argument.role == "in" else ""
    match argument.passing:
        case "tensor":
            return f"diopi{const}TensorHandle_t"
        case "tensors":
            return f"diopi{const}TensorHandle_t*"
        case "tensor*":
            return "diopiTensorHandle_t*"
        case "scalar":
            return "const diopiScalar_t*"
        case "scalar_value":
            return "diopiScalar_t"
        case "size":
            return "diopiSize_t"
        case "size*":
            return "const diopiSize_t*"
        case "str":
            return "const char*"
        case "generator":
            return "diopiGeneratorHandle_t"
        case "generator*":
            return "diopiGeneratorHandle_t*"
        case passing if passing in _PLAIN:
            return _PLAIN[passing]
        case passing if passing.removesuffix("*") in _PLAIN:
            return f"{_PLAIN[passing.removesuffix('*')]}*"
        case passing:
            raise Unwritable(f"'{argument.name}' is passed as {passing}, which a stand-alone file cannot hold")


class _Room:
    """Arguments as expressions, and the declarations before the call that they refer to."""

    def __init__(self, example: Example) -> None:
        self.declarations: list[str] = []
        self._made = 0
        self._names = {host.name: _name(host.name, "host") for host in example.host}

    def argument(self, argument: Argument) -> str:
        value, c = argument.value, f"arg_{argument.name}"
        match argument.passing:
            case "tensor":
                return _handle(value)
            case "tensors":
                return self._array(c, _type(argument).removesuffix("*"), map(_handle, value))
            case "tensor*":
                first, self._made = self._made, self._made + argument.count
                return f"made + {first}"
            case "scalar" | "scalar_value":
                return self._scalar(c, value, argument.passing == "scalar")
            case "size" | "size*":
                return self._size(c, value, argument.passing == "size*")
            case "str":
                return "NULL" if value is None else _string(value)
            case "generator":
                return "NULL" if value is None else f"generator(UINT64_C({value}))"
            case "generator*":
                made = (f"generator(UINT64_C({seed}))" for seed in value)
                return self._array(c, "diopiGeneratorHandle_t", made)
            case "bool*" | "double*" | "float*" | "int64*":
                return self._pointer(c, argument)
            case passing:
                return _literal(passing, value)

    def _array(self, c: str, kind: str, words: Iterable[str]) -> str:
        listed = ", ".join(words) or "NULL"
        self.declarations.append(f"{kind} {c}[] = {{{listed}}};")
        return c

    def _scalar(self, c: str, value: Any, by_pointer: bool) -> str:
        if value is None:
            return "NULL"
        if isinstance(value, float):
            text = f"{{.stype = diopi_dtype_float64, .fval = {_real(value)}}}"
        else:
            kind = "bool" if isinstance(value, bool) else "int64"
            text = f"{{.stype = diopi_dtype_{kind}, .ival = {_whole(int(value))}}}"
        self.declarations.append(f"const diopiScalar_t {c} = {text};")
        return f"&{c}" if by_pointer else c

    def _size(self, c: str, value: list[int] | None, by_pointer: bool) -> str:
        if value is None and by_pointer:
            return "NULL"
        numbers = value or []
        listed = ", ".join(map(_whole, numbers)) or "0"
        self.declarations.append(f"const int64_t {c}_data[] = {{{listed}}};")
        self.declarations.append(f"const diopiSize_t {c} = {{{c}_data, {len(numbers)}}};")
        return f"&{c}" if by_pointer else c

    def _pointer(self, c: str, argument: Argument) -> str:
        if argument.role == "host":
            cell = self._names[argument.name]
            return f"(bool*)&{cell}.value" if argument.passing == "bool*" else f"&{cell}.value"
        if argument.value is None:
            return "NULL"
        kind = argument.passing.removesuffix("*")
        self.declarations.append(f"{_PLAIN[kind]} {c} = {_literal(kind, argument.value)};")
        return f"&{c}"


def _handle(value: int | None) -> str:
    return "NULL" if value is None else f"t[{value}]"


def _literal(passing: str, value: Any) -> str:
    match passing:
        case "bool":
            return "true" if value else "false"
        case "float" | "double":
            return f"({passing}){_real(float(value))}"
        case _:
            return _whole(int(value))

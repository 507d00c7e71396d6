"""A call as a Python file that needs only Python."""

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from diopi_conformance.process.wire import ON_OTHER_BYTES, OTHER_OUTPUT
from diopi_conformance.repro.example import Argument, Example, Expectation, Host, Made, Tensor, Unwritable

_PLAIN = {
    "bool": "c_bool",
    "count": "c_int64",
    "double": "c_double",
    "enum": "c_int",
    "float": "c_float",
    "int32": "c_int32",
    "int64": "c_int64",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedView:
    values: str
    bounds: str
    choices: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuesView:
    """Each field as Python text."""

    name: str
    dtype: str
    number: int
    sizes: str
    strides: str
    expected: ExpectedView
    role: str = ""
    offset: int = 0
    elements: int = 0
    before: str = ""
    present: bool = True
    optional: bool = False
    unwritten: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonView:
    vendor: str
    symbol: str
    case: str
    reason: str
    file: str
    runtime: str
    library: str
    seconds: int
    tensors: tuple[ValuesView, ...]
    made: tuple[ValuesView, ...]
    host: tuple[ValuesView, ...]
    host_types: str
    arguments: tuple[str, ...]
    fresh: str
    other_output: int
    on_other_bytes: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHeader:
    """What the head of a file says."""

    vendor: str
    case: str
    reason: str  # e.g. "out[3] is 0.0, expected 0.25"
    file: str
    runtime: str
    library: str
    seconds: int


def python_view(example: Example, about: FileHeader) -> PythonView:
    """What the template lays out. Raises Unwritable."""
    room = _Names()
    return PythonView(
        vendor=_plain_text(about.vendor),
        symbol=example.symbol,
        case=_plain_text(about.case),
        reason=_plain_text(about.reason),
        file=_plain_text(about.file),
        runtime=repr(about.runtime),
        library=repr(about.library),
        seconds=about.seconds,
        tensors=tuple(map(_tensor, example.tensors)),
        made=tuple(map(_made, example.made)),
        host=tuple(map(_host, example.host)),
        host_types=", ".join("ctypes.c_uint8" if host.kind == "bool" else _PLAIN[host.kind] for host in example.host),
        arguments=tuple(room.argument(argument) for argument in example.arguments),
        fresh=repr(list(example.fresh)),
        other_output=OTHER_OUTPUT,
        on_other_bytes=ON_OTHER_BYTES,
    )


def _plain_text(text: str) -> str:
    """Fit for a docstring: one line, nothing that ends or escapes it."""
    return " ".join(text.encode("ascii", "backslashreplace").decode().split()).replace("\\", "/").replace('"', "'")


def _tensor(tensor: Tensor) -> ValuesView:
    digits = tensor.before.hex()
    lines = [digits[i : i + 96] for i in range(0, len(digits), 96)] or [""]
    return ValuesView(
        name=repr(tensor.name),
        dtype=repr(tensor.dtype),
        number=tensor.number,
        sizes=repr(list(tensor.sizes)),
        strides=repr(list(tensor.strides)),
        role=repr(tensor.role),
        offset=tensor.offset,
        elements=tensor.elements,
        unwritten=tensor.unwritten,
        before="\n".join(f'            "{line}"' for line in lines),
        expected=_expected(tensor.expectation),
    )


def _made(made: Made) -> ValuesView:
    return ValuesView(
        name=repr(made.name),
        dtype=repr(made.dtype),
        number=made.number,
        sizes=repr(list(made.sizes)),
        strides=repr(None if made.strides is None else list(made.strides)),
        present=made.present,
        optional=made.optional,
        expected=_expected(made.expectation),
    )


def _host(host: Host) -> ValuesView:
    expected = _expected(host.expectation)
    return ValuesView(name=repr(host.name), dtype="''", number=0, sizes="[]", strides="[]", expected=expected)


def _expected(expectation: Expectation) -> ExpectedView:
    return ExpectedView(
        values=_listed(map(repr, expectation.values)),
        bounds=_listed(map(repr, expectation.bounds)),
        choices=_listed(repr(list(choice)) for choice in expectation.choices),
    )


def _listed(words: Iterable[str]) -> str:
    text = ", ".join(words)
    if len(text) <= 80:
        return text
    indent = " " * 12
    lines = textwrap.wrap(text, 100, initial_indent=indent, subsequent_indent=indent, break_long_words=False)
    return "\n" + "\n".join(lines) + "\n        "


class _Names:
    """Arguments as ctypes expressions; counts the handles and numbers that the function fills."""

    def __init__(self) -> None:
        self._made = 0
        self._host = 0

    def argument(self, argument: Argument) -> str:
        value = argument.value
        match argument.passing:
            case "tensor":
                return "None" if value is None else f"c_void_p(tensors[{value}])"
            case "tensors":
                return f"handles([{', '.join(_handle(entry) for entry in value)}])"
            case "tensor*":
                first, self._made = self._made, self._made + argument.count
                return f"ctypes.byref(made, {first} * ctypes.sizeof(c_void_p))"
            case "scalar" | "scalar_value":
                return _scalar(value, argument.passing == "scalar")
            case "size":
                return "size([])" if value is None else f"size({list(value)!r})"
            case "size*":
                return "None" if value is None else f"ctypes.byref(size({list(value)!r}))"
            case "str":
                return "None" if value is None else f"c_char_p({value.encode()!r})"
            case "generator":
                return "None" if value is None else f"c_void_p(generator({value}))"
            case "generator*":
                return f"handles([{', '.join(f'generator({seed})' for seed in value)}])"
            case "bool*" | "double*" | "float*" | "int64*":
                return self._pointer(argument)
            case passing if passing in _PLAIN:
                return f"{_PLAIN[passing]}({_number(value)})"
            case passing:
                raise Unwritable(f"'{argument.name}' is passed as {passing}, which a stand-alone file cannot hold")

    def _pointer(self, argument: Argument) -> str:
        if argument.role == "host":
            self._host += 1
            return f"ctypes.byref(host[{self._host - 1}])"
        if argument.value is None:
            return "None"
        return f"ctypes.byref(kept({_PLAIN[argument.passing[:-1]]}({_number(argument.value)})))"


def _handle(value: Any) -> str:
    return "None" if value is None else f"tensors[{value}]"


def _scalar(value: Any, by_pointer: bool) -> str:
    if value is None:
        return "None"
    maker = "truth" if isinstance(value, bool) else "whole" if isinstance(value, int) else "real"
    made = f"{maker}({_number(value)})"
    return f"ctypes.byref({made})" if by_pointer else made


def _number(value: Any) -> str:
    return repr(value)

"""The arguments of a call in C: types, expressions, and what is declared for them before the call."""

from collections.abc import Iterable
from typing import Any

from diopi_conformance.repro.c_text import PLAIN, identifier, literal, real, string, whole
from diopi_conformance.repro.example import Argument, Example, Unwritable


def argument_type(argument: Argument) -> str:
    """The parameter's type. Raises Unwritable."""
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
        case passing if passing in PLAIN:
            return PLAIN[passing]
        case passing if passing.removesuffix("*") in PLAIN:
            return f"{PLAIN[passing.removesuffix('*')]}*"
        case passing:
            raise Unwritable(f"'{argument.name}' is passed as {passing}, which a stand-alone file cannot hold")


class Arguments:
    """Arguments as expressions, and the declarations before the call that they refer to."""

    def __init__(self, example: Example) -> None:
        self.declarations: list[str] = []
        self._made = 0
        self._names = {host.name: identifier(host.name, "host") for host in example.host}

    def argument(self, argument: Argument) -> str:
        """The expression of one argument; call it for all, in order."""
        value, c = argument.value, f"arg_{argument.name}"
        match argument.passing:
            case "tensor":
                return _handle(value)
            case "tensors":
                return self._array(c, argument_type(argument).removesuffix("*"), map(_handle, value))
            case "tensor*":
                first, self._made = self._made, self._made + argument.count
                return f"made + {first}"
            case "scalar" | "scalar_value":
                return self._scalar(c, value, argument.passing == "scalar")
            case "size" | "size*":
                return self._size(c, value, argument.passing == "size*")
            case "str":
                return "NULL" if value is None else string(value)
            case "generator":
                return "NULL" if value is None else f"generator(UINT64_C({value}))"
            case "generator*":
                made = (f"generator(UINT64_C({seed}))" for seed in value)
                return self._array(c, "diopiGeneratorHandle_t", made)
            case "bool*" | "double*" | "float*" | "int64*":
                return self._pointer(c, argument)
            case passing:
                return literal(passing, value)

    def _array(self, c: str, kind: str, words: Iterable[str]) -> str:
        listed = ", ".join(words) or "NULL"
        self.declarations.append(f"{kind} {c}[] = {{{listed}}};")
        return c

    def _scalar(self, c: str, value: Any, by_pointer: bool) -> str:
        if value is None:
            return "NULL"
        if isinstance(value, float):
            text = f"{{.stype = diopi_dtype_float64, .fval = {real(value)}}}"
        else:
            kind = "bool" if isinstance(value, bool) else "int64"
            text = f"{{.stype = diopi_dtype_{kind}, .ival = {whole(int(value))}}}"
        self.declarations.append(f"const diopiScalar_t {c} = {text};")
        return f"&{c}" if by_pointer else c

    def _size(self, c: str, value: list[int] | None, by_pointer: bool) -> str:
        if value is None and by_pointer:
            return "NULL"
        numbers = value or []
        listed = ", ".join(map(whole, numbers)) or "0"
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
        self.declarations.append(f"{PLAIN[kind]} {c} = {literal(kind, argument.value)};")
        return f"&{c}"


def _handle(value: int | None) -> str:
    return "NULL" if value is None else f"t[{value}]"

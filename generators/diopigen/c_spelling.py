"""How C spells the types of a schema; shared by every target that emits C or C++."""

from dataclasses import dataclass
from typing import assert_never

from diopigen.model.op import Function, Param, Role
from diopigen.model.type import TensorType, Value, ValueType


@dataclass(frozen=True, slots=True, kw_only=True)
class CArg:
    """One C parameter; `param` is None for the context and for counts."""

    type: str  # e.g. "const diopiScalar_t*"
    name: str  # e.g. "alpha"
    param: Param | None

    def __str__(self) -> str:
        """The declaration. e.g. "int64_t n", "void (*callback)(int)", "int64_t shape[4]"."""
        head, star, rest = self.type.partition("(*")
        if star:
            return f"{head}{star}{self.name}{rest}"
        head, bracket, rest = self.type.partition("[")
        return f"{head.rstrip()} {self.name}{bracket}{rest}"


_PLAIN = {
    Value.INT: "int64_t",
    Value.INT32: "int32_t",
    Value.FLOAT: "double",
    Value.FLOAT32: "float",
    Value.BOOL: "bool",
    Value.STR: "const char*",
    Value.DIM: "int64_t",
    Value.GENERATOR: "diopiGeneratorHandle_t",
    Value.POINTER: "void*",
    Value.REDUCTION: "diopiReduction_t",
    Value.ROUND_MODE: "diopiRoundMode_t",
    Value.MEMORY_FORMAT: "diopiMemoryFormat_t",
}


def c_text(text: str) -> str:
    """A string literal of C and C++."""
    escaped = "".join(_ESCAPED.get(c) or (f"\\{ord(c):03o}" if c < " " or c == "\x7f" else c) for c in text)
    return f'"{escaped}"'


def c_number(text: str) -> str:
    """A number of a schema; a whole one that no integer type holds is a float."""
    return f"{text}.0" if text.isdigit() and int(text) >= 2**63 else text


_ESCAPED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "?": "\\?"}  # of two question marks a trigraph could begin


def c_type(param: Param) -> str:
    """The C type of one parameter, the contract's deviations included."""
    if param.c is not None:
        return param.c
    match param.type:
        case TensorType():
            return _tensor(param.type, param.role)
        case ValueType():
            return _value(param.type, param.role)
        case other:
            assert_never(other)


def _tensor(type_: TensorType, role: Role) -> str:
    handle = "diopiConstTensorHandle_t" if role is Role.IN else "diopiTensorHandle_t"
    return f"{handle}*" if type_.count is not None or role is Role.CALLEE_OUT else handle


def _value(type_: ValueType, role: Role) -> str:
    if type_.value is Value.SCALAR:
        return "const diopiScalar_t*"
    plain = _PLAIN[type_.value]
    if type_.many and type_.value is Value.GENERATOR:
        return f"{plain}*"
    if type_.many:
        return "diopiSize_t*" if type_.optional else "diopiSize_t"
    if role is Role.HOST_OUT or (role is Role.INOUT and type_.value is not Value.POINTER):
        return f"{plain}*"
    return f"const {plain}*" if type_.optional and type_.value not in (Value.STR, Value.GENERATOR) else plain


def c_args(function: Function) -> tuple[CArg, ...]:
    """All C parameters in order: the context, the params, and each count after the last list that names it."""
    last = {
        p.type.count: index
        for index, p in enumerate(function.params)
        if isinstance(p.type, TensorType) and p.type.count is not None
    }
    args = [CArg(type="diopiContextHandle_t", name="ctx", param=None)]
    for index, param in enumerate(function.params):
        args.append(CArg(type=c_type(param), name=param.name, param=param))
        args.extend(CArg(type="int64_t", name=n, param=None) for n, at in last.items() if at == index and n)
    return tuple(args)


def c_signature(function: Function) -> str:
    """e.g. "diopiError_t diopiRelu(diopiContextHandle_t ctx, ...)"."""
    return f"diopiError_t {function.symbol}({', '.join(map(str, c_args(function)))})"

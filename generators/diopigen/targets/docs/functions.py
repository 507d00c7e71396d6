"""The C functions of an operator: declarations, and what each parameter is for."""

from dataclasses import dataclass

from diopigen.c_spelling import c_args
from diopigen.model.op import Arg, Form, Function, Literal, Op, Param, Role
from diopigen.model.type import TensorType, Value, ValueType
from diopigen.targets.docs.markdown import code

WIDTH = 100  # characters of a declaration that stays on one line

_NOTES = {
    Form.OUT: "",
    Form.INPLACE: "In place: `{first}` is read and written.",
    Form.SCALAR: "With a number: {scalars}.",
    Form.INPLACE_SCALAR: "In place with a number: `{first}` is read and written, {scalars}.",
    Form.BACKWARD: "The gradients.",
}
_DIRECTION = {
    Role.IN: "in",
    Role.OUT: "out",
    Role.INOUT: "in, out",
    Role.CALLEE_OUT: "out, allocated by the function",
    Role.HOST_OUT: "out, in host memory",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ParamRow:
    name: str
    direction: str  # e.g. "in"
    type: str  # e.g. "Tensor<T>"
    default: str  # e.g. "1"
    shape: str  # e.g. "broadcast(input, other)"


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionView:
    symbol: str
    note: str  # e.g. "In place: `input` is read and written."
    declaration: str
    params: tuple[ParamRow, ...]  # of forms whose parameters are not those of the op


def function_view(op: Op, function: Function) -> FunctionView:
    """One function as its page shows it."""
    first = next((p.name for p in function.params if p.role is Role.INOUT), "")
    scalars = " and ".join(code(arg.name) for arg in op.args if arg.scalar)
    note = _NOTES[function.form].format(first=first, scalars=f"{scalars} {_is(op)} a `Scalar`")
    return FunctionView(
        symbol=function.symbol,
        note=note,
        declaration=declaration(function),
        params=tuple(_param(op, p) for p in function.params) if function.form is Form.BACKWARD else (),
    )


def _is(op: Op) -> str:
    return "are each" if sum(arg.scalar for arg in op.args) > 1 else "is"


def declaration(function: Function) -> str:
    """e.g. "diopiError_t diopiRelu(diopiContextHandle_t ctx, ...);", a parameter a line where it is long."""
    args = [str(arg) for arg in c_args(function)]
    line = f"diopiError_t {function.symbol}({', '.join(args)});"
    if len(line) <= WIDTH:
        return line
    return f"diopiError_t {function.symbol}(\n    " + ",\n    ".join(args) + ");"


def arguments(op: Op) -> tuple[ParamRow, ...]:
    """The op's arguments, then its outputs."""
    return tuple(_arg(arg) for arg in (*op.args, *op.outs))


def _arg(arg: Arg) -> ParamRow:
    return ParamRow(
        name=code(arg.name),
        direction=_DIRECTION[arg.role],
        type=code(str(arg.type)) + (" or `Scalar`" if arg.scalar else ""),
        default=code(literal(arg.default, arg.type)) if arg.has_default else "",
        shape="" if arg.shape is None else code(str(arg.shape)),
    )


def _param(op: Op, param: Param) -> ParamRow:
    """A parameter of the backward function; a gradient has the shape of its argument."""
    gradients = {} if op.backward is None else {f"grad_{arg}": arg for arg, _ in op.backward.grads}
    shape = gradients.get(param.arg, "") if param.shape is None else str(param.shape)
    return ParamRow(
        name=code(param.name),
        direction=_DIRECTION[param.role],
        type=code(str(param.type)),
        default=code(literal(param.default, param.type)) if param.has_default else "",
        shape=code(shape),
    )


def literal(value: Literal, type_: TensorType | ValueType) -> str:
    """A default as a schema writes it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "[" + ", ".join(literal(item, type_) for item in value) + "]"
    quoted = isinstance(type_, ValueType) and type_.value is Value.STR
    return f'"{value}"' if quoted else str(value)

"""How each parameter of a C function is made from the arguments of an ATen operator, as lines of C++."""

from dataclasses import dataclass
from typing import assert_never

from diopigen.c_spelling import c_text
from diopigen.model.aten import Absent, FromArg, FromDerive, FromLiteral, FromReturn, Source
from diopigen.model.expr import Binary, Call, Expr, Name, Number, Text, Unary
from diopigen.model.op import Literal, Param
from diopigen.model.type import ENUMERATORS, TensorType, Value, ValueType

_INTEGERS = (Value.INT, Value.DIM, Value.INT32)
CPP = {
    Value.INT: "int64_t",
    Value.INT32: "std::int32_t",
    Value.DIM: "int64_t",
    Value.FLOAT: "double",
    Value.FLOAT32: "float",
    Value.BOOL: "bool",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument of the call of a C function."""

    lines: tuple[str, ...] = ()  # e.g. ("const ScalarArg alpha_arg(alpha);",)
    call: str  # e.g. "alpha_arg"
    guard: str | None = None  # e.g. "alpha_arg": must be true, or the fallback serves the call
    counted: bool = False  # a list, whose count is `call.size()`


def value_argument(
    param: Param, source: Source, types: dict[str, str], scalar_tensor: str | None, device: str, rounded: str | None
) -> Argument:
    """A parameter that is not a tensor. `types` are the C++ types of the ATen arguments by name.

    `rounded` is the dtype that a number is of.
    """
    kind = param.type
    assert isinstance(kind, ValueType)
    given, spelled = _given(kind, source, types)
    if given is None:
        return _absent(param, kind, device)
    if isinstance(source, FromArg) and source.name == scalar_tensor:
        given, spelled = f"{given}.item()", "at::Scalar"
    if kind.many:
        return _many(param, kind, given)
    return _single(param, kind, given, spelled, device, rounded)


def _given(kind: ValueType, source: Source, types: dict[str, str]) -> tuple[str | None, str]:
    """The C++ expression of a source and its type; no expression where the parameter is absent."""
    match source:
        case FromArg():
            return source.name, types[source.name]
        case FromDerive():
            return _derived(kind, source.expr), ""
        case FromLiteral():
            return literal(kind, source.value), ""
        case Absent():
            return None, ""
        case FromReturn():
            raise AssertionError("a value is never an output")
        case _:
            assert_never(source)


def _absent(param: Param, kind: ValueType, device: str) -> Argument:
    if kind.value is Value.GENERATOR:
        local = f"{param.name}_arg"
        return Argument(lines=(f"const GeneratorArg {local}(std::nullopt, {device});",), call=local)
    if kind.many and not kind.optional:
        return Argument(call="diopiSize_t{nullptr, 0}")
    return Argument(call="nullptr")


def _single(param: Param, kind: ValueType, given: str, spelled: str, device: str, rounded: str | None) -> Argument:
    local = f"{param.name}_arg"
    optional = "optional<" in spelled
    match kind.value:
        case Value.SCALAR:
            # with parentheses alone the line might declare a function
            wrapped = given if "Scalar" in spelled else f"at::Scalar{{{given}}}"
            call = local if param.c is None or "const" in param.c else f"mutable_scalar({local})"
            made = ", ".join(part for part in (wrapped, rounded) if part is not None)
            return Argument(lines=(f"const ScalarArg {local}({made});",), call=call, guard=local)
        case Value.INT | Value.DIM | Value.INT32 | Value.FLOAT | Value.FLOAT32 | Value.BOOL:
            return _number(param, kind, given, spelled)
        case Value.STR:
            text = f"{given}.value_or(std::string_view())" if optional else given
            return Argument(lines=(f"const std::string {local}({text});",), call=f"{local}.c_str()")
        case Value.GENERATOR:
            return Argument(lines=(f"const GeneratorArg {local}({given}, {device});",), call=local)
        case Value.REDUCTION:
            return Argument(call=given if spelled == "" else f"static_cast<diopiReduction_t>({given})")
        case Value.ROUND_MODE:
            return Argument(call=given if spelled == "" else f"round_mode({given})")
        case Value.MEMORY_FORMAT:
            return Argument(call=given if spelled == "" else f"memory_format({given})")
        case Value.POINTER:
            raise AssertionError("bind_aten lets no ATen argument become an address")
        case _:
            assert_never(kind.value)


def _number(param: Param, kind: ValueType, given: str, spelled: str) -> Argument:
    local, cpp = f"{param.name}_arg", CPP[kind.value]
    if kind.optional:
        number = f"scalar_cast<{cpp}>({given})" if "Scalar" in spelled else given
        return Argument(lines=(f"const OptionalArg<{cpp}> {local}({number});",), call=local)
    if "Scalar" in spelled:
        convert = {"double": "toDouble", "float": "toFloat", "bool": "toBool"}.get(cpp, "toLong")
        return Argument(call=f"{given}.{convert}()", guard=f"is_real({given})")
    if "optional<" in spelled:
        default = literal(kind, param.default) if param.has_default and param.default is not None else "{}"
        return Argument(call=f"{given}.value_or({default})")
    narrowed = kind.value in (Value.INT32, Value.FLOAT32) and spelled != ""
    return Argument(call=f"static_cast<{cpp}>({given})" if narrowed else given)


def _many(param: Param, kind: ValueType, given: str) -> Argument:
    local = f"{param.name}_arg"
    if kind.optional or (param.c is not None and param.c.endswith("*")):
        return Argument(lines=(f"OptionalSizeArg {local}({given});",), call=local)
    if kind.length is not None:
        return Argument(lines=(f"const SizeArg<{kind.length}> {local}({given});",), call=local, guard=local)
    return Argument(lines=(f"const SizeArg<> {local}({given});",), call=local)


def literal(kind: ValueType, value: Literal) -> str:
    """A default of the schema in C++."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return _number_literal(str(value))
        case str():
            return _enumerator(kind, value)
        case tuple():
            return f"{{{', '.join(literal(kind, v) for v in value)}}}"
        case None:
            return "{}"
        case _:
            assert_never(value)


def _enumerator(kind: ValueType, word: str) -> str:
    if kind.value in ENUMERATORS:
        return ENUMERATORS[kind.value][word]
    return _number_literal(word) if word in ("inf", "-inf", "nan") else c_text(word)


def _number_literal(text: str) -> str:
    limits = "std::numeric_limits<double>::"
    named = {"inf": f"{limits}infinity()", "-inf": f"-{limits}infinity()", "nan": f"{limits}quiet_NaN()"}
    return named.get(text, text)


def _derived(kind: ValueType, expr: Expr) -> str:
    if isinstance(expr, Name) and kind.value in (Value.REDUCTION, Value.ROUND_MODE, Value.MEMORY_FORMAT):
        return _enumerator(kind, expr.name)
    return derived(expr)


def derived(expr: Expr, namespace: str = "derive") -> str:
    """The C++ of a `derive` expression: names are ATen arguments, calls are functions of derive.h.

    One under `checks` calls functions of checks.h, in the namespace of that name.
    """
    match expr:
        case Name():
            return expr.name
        case Number():
            return _number_literal(expr.text)
        case Text():
            return c_text(expr.text)
        case Unary():
            return f"{'!' if expr.op == 'not' else expr.op}{derived(expr.operand, namespace)}"
        case Binary():
            return f"({derived(expr.left, namespace)} {expr.op} {derived(expr.right, namespace)})"
        case Call():
            return f"{namespace}::{expr.function}({', '.join(derived(arg, namespace) for arg in expr.args)})"
        case _:
            assert_never(expr)


def tensor_argument(param: Param, given: str, dtype: str | None, device: str, counted: bool) -> Argument:
    """An input tensor, or a list of them, cast to `dtype` if that is not None; `counted` if its length follows."""
    assert isinstance(param.type, TensorType)
    local = f"{param.name}_arg"
    values = ", ".join(v for v in (given, dtype, device) if v is not None)
    if param.type.count is not None:
        return Argument(lines=(f"InList {local}({values});",), call=local, counted=counted)
    # A cast to real numbers would drop the imaginary parts; where operands meet in a common dtype, it has them.
    guard = f"castable({given}, {dtype})" if dtype is not None and dtype != "common" else None
    return Argument(lines=(f"const In {local}({values});",), call=local, guard=guard)

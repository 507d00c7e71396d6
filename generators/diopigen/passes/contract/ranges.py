"""Which numbers a dtype and an argument can have."""

import math
import struct
from collections.abc import Iterable

from diopigen.model.compose import Operand
from diopigen.model.expr import Number, Unary
from diopigen.model.op import Literal, Op
from diopigen.model.type import Element, Fixed, Value, Var
from diopigen.vocabulary.dtype import DType, Kind

_FORMATS = {5: "e", 8: "f", 11: "d"}  # of struct, by bits of the exponent
_PARTS = {4: "e", 8: "f", 16: "d"}  # of complex numbers, by bytes
_BITS = {Value.INT: 64, Value.DIM: 64, Value.INT32: 32, Value.SCALAR: 64}


def constant(expr: Operand) -> int | float | None:
    """The number that an expression is, with its sign."""
    match expr:
        case Number(text=text):
            return number(text)
        case Unary(op="-", operand=Number(text=text)):
            return -number(text)
        case _:
            return None


def number(text: str) -> int | float:
    """e.g. 3, 0.5, inf."""
    return int(text) if text.isdigit() else float(text)


def overflows(text: str) -> bool:
    """Whether a number is written that no float holds. e.g. "1e400"."""
    try:
        return math.isinf(float(text)) and "inf" not in text.lower()
    except ValueError:
        return False


def dtype_holds(dtype: DType, value: int | float) -> bool:
    """Whether `value` is in the range of `dtype`; digits may be lost."""
    match dtype.kind:
        case Kind.BOOL:
            return value in (0, 1)
        case Kind.INTEGER:
            return _whole_fits(value, 8 * dtype.size, signed=dtype.signed)
        case Kind.FLOAT:
            form = _FORMATS.get(dtype.exponent)
            return not dtype.largest < abs(value) < math.inf if form is None else _float_fits(value, form)
        case Kind.COMPLEX:
            return _float_fits(value, _PARTS[dtype.size])


def computes_with(dtype: DType, value: int | float) -> bool:
    """Whether a kernel of `dtype` can have `value` in its expression; halves compute in float32."""
    return _float_fits(value, "f") if dtype.half else dtype_holds(dtype, value)


def value_holds(kind: Value, value: Literal) -> bool:
    """Whether an argument that is not a tensor can be `value`."""
    match kind:
        case Value.BOOL:
            return isinstance(value, bool)
        case Value.STR:
            return isinstance(value, str)
        case Value.INT | Value.INT32 | Value.DIM:
            return (
                isinstance(value, int) and not isinstance(value, bool) and _whole_fits(value, _BITS[kind], signed=True)
            )
        case Value.SCALAR if isinstance(value, int):
            return isinstance(value, bool) or _whole_fits(value, 64, signed=True)
        case Value.FLOAT | Value.FLOAT32 | Value.SCALAR:
            form = "f" if kind is Value.FLOAT32 else "d"
            return isinstance(value, int | float) and not isinstance(value, bool) and _float_fits(value, form)
        case _:
            return True


def possible_dtypes(op: Op, element: Element) -> tuple[DType, ...]:
    """The dtypes that a tensor of `element` may have, where that is a variable or a dtype; else none."""
    match element:
        case Var(name=name):
            return next((members.members for variable, members in op.where if variable == name), ())
        case Fixed(dtype=dtype):
            return (dtype,)
        case _:
            return ()


def range_of(kind: Value) -> str | None:
    """What an argument of a kind can be, in words."""
    if kind in _BITS:
        return f"write a whole number from {-(2 ** (_BITS[kind] - 1))} to {2 ** (_BITS[kind] - 1) - 1}"
    return "write a number that 32 bits hold" if kind is Value.FLOAT32 else None


def held(dtypes: Iterable[DType], value: int | float) -> bool:
    """Whether any of the dtypes can have `value`."""
    return any(dtype_holds(dtype, value) for dtype in dtypes)


def _whole_fits(value: int | float, bits: int, signed: bool) -> bool:
    if not math.isfinite(value):
        return False
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return bool(low <= value <= high)


def _float_fits(value: int | float, form: str) -> bool:
    try:
        struct.pack(f"<{form}", value)
    except (OverflowError, struct.error):
        return False
    return True

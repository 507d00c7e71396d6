"""own_operators.json: each operator's schema in torch's words, and how its function is called."""

import json
from collections.abc import Iterator

from diopigen.c_spelling import c_type
from diopigen.model.op import Function, Param, Role
from diopigen.model.program import Program
from diopigen.model.type import Fixed, ShapeCall, ShapeName, TensorType, Value
from diopigen.records.codec import record_text
from diopigen.records.own_operators import OwnOperator, OwnOperators, OwnParam, OwnResult
from diopigen.targets.output import Output, Render

_TORCH = {
    Value.SCALAR: "Scalar",
    Value.INT: "SymInt",
    Value.INT32: "SymInt",
    Value.DIM: "SymInt",
    Value.FLOAT: "float",
    Value.FLOAT32: "float",
    Value.BOOL: Value.BOOL.value,
    Value.STR: "str",
}


def outputs(program: Program, _render: Render) -> Iterator[Output]:
    """`torch/own_operators.json`, for a vendor that has any."""
    if program.own_header is None or program.vendor is None:
        return
    functions = (f for f in program.functions if f.symbol in program.torch_operators)
    record = OwnOperators(vendor=program.vendor.name, operators=tuple(map(_operator, functions)))
    yield Output(path="torch/own_operators.json", text=record_text(record))


def _operator(function: Function) -> OwnOperator:
    return OwnOperator(
        schema=_schema(function),
        symbol=function.symbol,
        params=tuple(map(_param, function.params)),
        results={param.name: _result(param) for param in function.outs},
    )


def _schema(function: Function) -> str:
    """e.g. "gap(Tensor input, Tensor other, float alpha=1.0) -> Tensor"; what is written in place is not returned."""
    name = function.op + ("_" if function.form.inplace else "") + (".Scalar" if function.form.scalar else "")
    required = max((i for i, p in enumerate(function.ins) if not p.has_default), default=-1)
    args = ", ".join(_argument(param, place > required) for place, param in enumerate(function.ins))
    results = ", ".join(["Tensor"] * len(function.outs))
    return f"{name}({args}) -> {results if len(function.outs) == 1 else f'({results})'}"


def _argument(param: Param, may_be_left_out: bool) -> str:
    if isinstance(param.type, TensorType):
        written = "(a!)" if param.role is Role.INOUT else ""
        type_ = f"Tensor{written}{'?' if param.type.optional else ''}"
    else:
        type_ = _TORCH[param.type.value] + ("[]" if param.type.many else "")
    default = f"={_literal(param)}" if may_be_left_out else ""
    return f"{type_} {param.name}{default}"


def _literal(param: Param) -> str:
    value = param.default
    if value is None or isinstance(value, bool):
        return str(value)
    whole = isinstance(value, int) and not isinstance(param.type, TensorType) and _TORCH[param.type.value] == "float"
    return f"{value}.0" if whole else json.dumps(list(value) if isinstance(value, tuple) else value)


def _param(param: Param) -> OwnParam:
    if isinstance(param.type, TensorType):
        return OwnParam(name=param.name, passing="tensor", element=_element(param.type))
    words = {Value.SCALAR: "scalar", Value.STR: "str"}
    passing = "size" if param.type.many else words.get(param.type.value) or c_type(param)
    return OwnParam(name=param.name, passing=passing)


def _element(tensor: TensorType) -> str:
    return tensor.element.dtype.word if isinstance(tensor.element, Fixed) else str(tensor.element)


def _result(param: Param) -> OwnResult:
    shape, tensor = param.shape, param.tensor
    names = shape.args if isinstance(shape, ShapeCall) else (shape,)
    assert tensor is not None
    return OwnResult(
        shapes=tuple(name.name for name in names if isinstance(name, ShapeName)),
        dtype=_element(tensor) if isinstance(tensor.element, Fixed) else "",
    )

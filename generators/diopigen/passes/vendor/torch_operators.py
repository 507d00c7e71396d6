"""Which functions of the vendor's own become operators of torch, and why others do not."""

from dataclasses import replace

from diopigen.diagnostics import Diagnostics
from diopigen.model.op import Form, Function, Param, Role
from diopigen.model.program import Program
from diopigen.model.type import Fixed, ShapeCall, ShapeName, TensorType, Value, ValueType, Var

_VALUES = (Value.SCALAR, Value.INT, Value.INT32, Value.FLOAT, Value.FLOAT32, Value.BOOL, Value.STR, Value.DIM)


def torch_operators(program: Program, diagnostics: Diagnostics) -> Program:
    """Fills `torch_operators` with the symbols of those that the vendor has and that torch can call."""
    found: list[str] = []
    for op in program.own():
        for clause in op.aten:
            message = f"'{op.name}' serves no operator that torch has: only the contract's operators do"
            diagnostics.warning("aten-of-own", message, clause.span, "remove 'aten'; torch calls it by its own name")
        for function in program.forms(op.name):
            if program.plan(function.symbol) is None:
                continue
            reason = _misfit(function)
            if reason is None:
                found.append(function.symbol)
                continue
            message = f"torch has no operator for '{function.symbol}': {reason}"
            diagnostics.warning("no-torch-operator", message, function.span, "C and C++ programs can call it")
    return replace(program, torch_operators=tuple(found))


def _misfit(function: Function) -> str | None:
    """Why torch cannot call a function; None where it can."""
    if function.form is Form.BACKWARD:
        return "gradients of a vendor's own operators are not registered"
    reasons = (_param_misfit(param, function) for param in function.params)
    return next((reason for reason in reasons if reason is not None), None)


def _param_misfit(param: Param, function: Function) -> str | None:
    if not param.usual_in_c:
        return f"'{param.name}' is '{param.c}' in C"
    if isinstance(param.type, ValueType):
        lists = param.type.many and param.type.value is not Value.INT
        known = param.role is Role.IN and param.type.value in _VALUES and not param.type.optional and not lists
        return None if known else f"'{param.name}' is '{param.type}'"
    tensor: TensorType = param.type
    if tensor.count is not None or param.role not in (Role.IN, Role.OUT, Role.INOUT):
        return f"'{param.name}' is '{tensor}'"
    if not isinstance(tensor.element, Var | Fixed):
        return f"the dtype of '{param.name}' is '{tensor.element}'"
    if param.role is not Role.OUT:
        return None
    shape = param.shape
    inputs = {p.name for p in function.ins if p.tensor is not None}
    names = shape.args if isinstance(shape, ShapeCall) and shape.rule == "broadcast" else (shape,)
    if not all(isinstance(name, ShapeName) and name.name in inputs for name in names):
        return f"the shape of '{param.name}' is '{shape}', not that of inputs"
    typed = any(p.tensor is not None and p.tensor.element == tensor.element for p in function.ins)
    return None if typed or isinstance(tensor.element, Fixed) else f"no input has the dtype of '{param.name}'"

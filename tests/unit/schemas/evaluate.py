"""Evaluates kernel expressions in float64 with PyTorch, independently of the C++ that is printed from them."""

import operator
from collections.abc import Callable, Mapping
from typing import Any, assert_never

import torch

from diopigen.model.expr import Binary, Call, Expr, Name, Number, Text, Unary

Names = Mapping[str, Any]  # tensors, words, or None for an absent argument

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "and": torch.logical_and,
    "or": torch.logical_or,
}

_CALLS: dict[str, Callable[..., Any]] = {
    "min": torch.minimum,
    "max": torch.maximum,
    "where": lambda condition, a, b: torch.where(condition.bool(), a, b),
    "floor_div": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "trunc_div": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
}


def evaluate(expr: Expr, names: Names) -> Any:
    """The value of `expr`; a name that is no argument is an enumerator and stands for itself."""
    match expr:
        case Name():
            value = names.get(expr.name, expr.name)
            return torch.tensor(0.0, dtype=torch.float64) if value is None else value
        case Number():
            return torch.tensor(float(expr.text), dtype=torch.float64)
        case Text():
            return expr.text
        case Unary():
            return _unary(expr.op, evaluate(expr.operand, names))
        case Binary():
            left, right = evaluate(expr.left, names), evaluate(expr.right, names)
            if isinstance(left, str) or isinstance(right, str):
                return torch.tensor(_BINARY[expr.op](left, right))
            return _BINARY[expr.op](left, right)
        case Call(function="given", args=(Name(name=name),)):
            return torch.tensor(names.get(name) is not None)
        case Call():
            args = [evaluate(arg, names) for arg in expr.args]
            return (_CALLS.get(expr.function) or getattr(torch, expr.function))(*args)
        case _:
            assert_never(expr)


def _unary(op: str, operand: Any) -> Any:
    match op:
        case "-":
            return -operand
        case "~":
            return ~operand
        case _:
            return torch.logical_not(operand)

"""Expressions of the table over an operator's arguments: what a parameter is given, and what must hold of a call."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import sympy
from torch.utils._sympy.functions import FloatTrueDiv, OpaqueUnaryFn_sqrt

from dicp.dims import all_same, same
from dicp.program import Dim, View


class Unknown(Exception):
    """An expression that only the eager operator's C++ computes."""


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": FloatTrueDiv,
}
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": sympy.Lt,
    "<=": sympy.Le,
    ">": sympy.Gt,
    ">=": sympy.Ge,
}


def value_of(tree: Sequence[Any], arguments: dict[str, Any]) -> Any:
    """What an expression is; a fraction that follows from symbols is one of theirs. Raises Unknown."""
    match tree:
        case ["number", text]:
            return float(text)
        case ["text", text]:
            return text
        case ["name", name] if name in arguments:
            return arguments[name]
        case ["-", operand]:
            return -_number(operand, arguments)
        case [("+" | "-" | "*" | "/") as sign, left, right]:
            return _plain(_ARITHMETIC[sign](*(_term(_number(side, arguments)) for side in (left, right))))
        case ["call", "given", name, default]:
            given = value_of(name, arguments)
            return value_of(default, arguments) if given is None else given
        case ["call", "size", tensor, ["number", place]]:
            return _view(tensor, arguments).sizes[int(place)]
        case ["call", "rank", tensor]:
            return len(_view(tensor, arguments).sizes)
        case ["call", "sqrt", operand]:
            return _plain(OpaqueUnaryFn_sqrt(_term(_number(operand, arguments))))
    raise Unknown


def holds(tree: Sequence[Any], arguments: dict[str, Any]) -> bool:
    """Whether a condition is known to hold, whatever the symbols are. Raises Unknown."""
    match tree:
        case ["and", left, right]:
            return holds(left, arguments) and holds(right, arguments)
        case ["or", left, right]:
            return holds(left, arguments) or holds(right, arguments)
        case ["not", ["name", name]] if isinstance(arguments.get(name), bool):
            return not arguments[name]
        case ["==", left, right]:
            return same(*(_number(side, arguments) for side in (left, right)))
        case [("<" | "<=" | ">" | ">=") as sign, left, right]:
            compared = _COMPARISONS[sign](*(_term(_number(side, arguments)) for side in (left, right)))
            return compared is sympy.true
        case ["call", "same", left, right]:
            return all_same(_view(left, arguments).sizes, _view(right, arguments).sizes)
        case ["name", name] if isinstance(arguments.get(name), bool):
            return bool(arguments[name])
    raise Unknown


def _view(tree: Sequence[Any], arguments: dict[str, Any]) -> View:
    value = value_of(tree, arguments)
    if not isinstance(value, View):
        raise Unknown
    return value


def _number(tree: Sequence[Any], arguments: dict[str, Any]) -> Any:
    value = value_of(tree, arguments)
    if not isinstance(value, int | float | sympy.Expr):
        raise Unknown
    return value


def _term(value: Dim | float) -> sympy.Expr:
    """A number as sympy counts with it: whole ones exactly, fractions as doubles."""
    return (
        sympy.Integer(int(value)) if not isinstance(value, sympy.Expr) and value == int(value) else sympy.sympify(value)
    )


def _plain(expr: sympy.Expr) -> Any:
    """A number of Python where no symbol is left."""
    if expr.free_symbols:
        return expr
    return int(expr) if expr.is_Integer else float(expr)

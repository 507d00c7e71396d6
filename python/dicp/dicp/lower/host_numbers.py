"""Numbers of the host as tensors without dimensions, e.g. the steps of an optimizer, and what is computed of them.

A kernel takes them as numbers, which a program computes once for each set of values. Where nobody else reads them, no
operator is left.
"""

from collections.abc import Callable
from typing import Any, TypeGuard

import sympy
import torch
from torch import fx
from torch.utils._sympy.functions import FloatPow, FloatTrueDiv, OpaqueUnaryFn_sqrt

from dicp.dims import Float32
from dicp.lower.arguments import named_arguments
from dicp.lower.state import State

_ARITHMETIC: dict[str, Callable[..., sympy.Expr]] = {
    "add": lambda one, other: one + other,
    "sub": lambda one, other: one - other,
    "rsub": lambda one, other: other - one,
    "mul": lambda one, other: one * other,
    "div": FloatTrueDiv,
    "pow": FloatPow,
    "neg": lambda one: -one,
    "reciprocal": lambda one: FloatTrueDiv(sympy.Float(1), one),
    "sqrt": OpaqueUnaryFn_sqrt,
}


def is_host_number(value: Any) -> TypeGuard[torch.Tensor]:
    """e.g. a float of Python, which torch.compile(dynamic=True) passes as a tensor."""
    return (
        isinstance(value, torch.Tensor)
        and value.device.type == "cpu"
        and value.dim() == 0
        and value.dtype in (torch.float64, torch.float32)
    )


def computed_on_host(state: State, node: fx.Node, value: Any) -> sympy.Expr | None:
    """What an operator of numbers gives, as an expression over the arguments; None where that is not known."""
    target = node.target
    if not is_host_number(value) or not isinstance(target, torch._ops.OpOverload):
        return None
    rule = _ARITHMETIC.get(target._schema.name.removeprefix("aten::"))
    named = named_arguments(node)
    if rule is None or named.pop("alpha", 1) != 1:
        return None
    operands = [_operand(state, given) for given in named.values()]
    if any(operand is None for operand in operands):
        return None
    found = rule(*operands)
    return Float32(found) if value.dtype == torch.float32 else found


def _operand(state: State, given: Any) -> sympy.Expr | None:
    if isinstance(given, fx.Node):
        return state.number(given)
    known = isinstance(given, int | float) and not isinstance(given, bool)
    return sympy.Float(repr(float(given)), 17) if known else None

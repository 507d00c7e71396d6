"""Elementwise operators as kernels of one step, from the schemas' expressions."""

from typing import Any

import sympy
import torch
from torch import fx
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

from dicp.calls import Unserved
from dicp.dtypes import STORAGE
from dicp.lower.arguments import holds, named_arguments, number_of
from dicp.lower.state import State, computes
from dicp.program import Index, Scalar, View


def pointwise(state: State, node: fx.Node, overload: str, value: Any) -> View:
    """Raises Unserved where the expression does not say what the node does."""
    bound = state.table.operators[overload]
    assert bound.kernel is not None
    text = state.table.kernels[bound.kernel]
    if not isinstance(value, torch.Tensor):
        raise Unserved("its kernel has one result")
    sources = bound.routes[-1].sources
    named = named_arguments(node)
    operands: list[View | Scalar | Index] = []
    typed: list[Any] = []  # what decides the type that is computed in
    rounded: dict[int, float] = {}  # the operands that are numbers of that type, by place
    for name in text.params:
        condition = next((c for c in text.conditions if c.name == name), None)
        if condition is not None:
            operands.append(Scalar(value=holds(condition.equals, sources[condition.param], named)))
            continue
        given = number_of(sources[name], named)
        operand = given
        if isinstance(given, fx.Node):
            operand = state.numbers.get(given, state.values[given])
            state.read |= operand.free_symbols if given in state.numbers else set()
        if operand is None and any(c.param == name for c in text.conditions):
            operand = 0  # is not read
        if isinstance(operand, View):
            if not computes(operand):
                raise Unserved(f"{operand.dtype} in a kernel")
            typed.append(given.meta["val"])
            operands.append(operand)
        elif isinstance(operand, bool | int | float | sympy.Expr):
            typed.append(_typed(given, operand))
            if isinstance(operand, float) and sources[name][1:] and sources[name][1] in bound.routes[-1].rounds:
                rounded[len(operands)] = operand
            operands.append(Scalar(value=operand))
        else:
            raise Unserved(f"the argument '{name}' is neither a number nor a tensor")
    if not any(isinstance(operand, View) for operand in operands) and value.dim() > 0:
        raise Unserved("no tensor to compute with")
    compute = met = value.dtype
    if text.boolean:
        compute, met = elementwise_dtypes(*typed, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)
    if met.is_floating_point and met.itemsize == 2:
        for place, number in rounded.items():
            operands[place] = Scalar(value=torch.tensor(number, dtype=met).item())
    for dtype in (value.dtype, compute):
        if dtype not in STORAGE:
            raise Unserved(f"{dtype} in a kernel")
    target = state.new(value)
    state.kernel(node, bound.kernel, operands, target, compute)
    return target


def _typed(given: Any, operand: Any) -> Any:
    """What says the type of a number."""
    if isinstance(given, fx.Node) and isinstance(given.meta["val"], torch.Tensor):
        return given.meta["val"]
    if isinstance(operand, sympy.Expr):
        return 1 if operand.is_integer else 1.0
    return operand

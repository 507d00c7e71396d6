"""The arguments of a node by the schema's names, and the conditions that they decide."""

import math
from typing import Any

import torch
from torch import fx

from dicp.calls import derived
from dicp.lower.state import tensors
from diopigen.records.operators import Tree

# The types of arguments that are values of elements.
_VALUES = ("number", "Optional[number]", "Tensor", "Optional[Tensor]")


def named_arguments(node: fx.Node) -> dict[str, Any]:
    """Every argument, defaults filled in."""
    assert isinstance(node.target, torch._ops.OpOverload)
    named: dict[str, Any] = {}
    for index, formal in enumerate(node.target._schema.arguments):
        if index < len(node.args) and not formal.kwarg_only:
            named[formal.name] = node.args[index]
        else:
            named[formal.name] = node.kwargs.get(formal.name, formal.default_value)
    return named


def resolved(named: dict[str, Any], values: dict[fx.Node, Any]) -> dict[str, Any]:
    """Nodes replaced by what they are in the program."""
    return {name: fx.node.map_arg(value, lambda node: values[node]) for name, value in named.items()}


def numbers_fit(node: fx.Node) -> bool:
    """Whether the dtype of each tensor that goes in or out holds each number that the operator takes as a value."""
    assert isinstance(node.target, torch._ops.OpOverload)
    named = named_arguments(node)
    numbers = [
        value
        for formal in node.target._schema.arguments
        for value in (named[formal.name],)
        if str(formal.type) in _VALUES and isinstance(value, int | float | complex) and not isinstance(value, bool)
    ]
    if not numbers:
        return True
    given = [operand.meta.get("val") for operand in node.all_input_nodes]
    found = [tensor.dtype for value in (*given, node.meta.get("val")) for tensor in tensors(value)]
    return all(_holds_number(dtype, number) for dtype in found for number in numbers)


def _holds_number(dtype: torch.dtype, number: complex) -> bool:
    if dtype == torch.bool or dtype.is_complex:
        return True
    if isinstance(number, complex):
        return False
    if dtype.is_floating_point:
        return not math.isfinite(number) or abs(number) <= torch.finfo(dtype).max
    limits = torch.iinfo(dtype)
    return math.isfinite(number) and limits.min <= int(number) <= limits.max


def number_of(source: Tree, named: dict[str, Any]) -> Any:
    """What an expression reads; a table has numbers that JSON lacks as texts. Raises Unserved."""
    value = derived(source, named)
    return float(value) if source[0] == "literal" and isinstance(value, str) else value


def holds(equals: str | None, source: Tree, named: dict[str, Any]) -> bool:
    """Whether a condition of a kernel holds."""
    value = derived(source, named)
    if equals is None:
        return value is not None
    rounding = {"RoundModeNone": None, "RoundModeTrunc": "trunc", "RoundModeFloor": "floor"}
    if equals in rounding:
        return bool(value == equals if source[0] == "literal" else value == rounding[equals])
    if equals.startswith("Reduction"):
        return bool(value == ["ReductionNone", "ReductionMean", "ReductionSum"].index(equals))
    return bool(value == equals)

"""The arguments of a node by the schema's names, and the conditions that they decide."""

from typing import Any

import torch
from torch import fx

from dicp.calls import derived


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


def number_of(source: list[Any], named: dict[str, Any]) -> Any:
    """What an expression reads; a table has numbers that JSON lacks as texts. Raises Unserved."""
    value = derived(source, named)
    return float(value) if source[0] == "literal" and isinstance(value, str) else value


def holds(equals: str | None, source: list[Any], named: dict[str, Any]) -> bool:
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

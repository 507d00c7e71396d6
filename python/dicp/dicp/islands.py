"""Islands: operators of the framework that run between the instructions of a program."""

from collections.abc import Sequence
from typing import Any

import sympy
import torch

from dicp.program import CallArgument, Island, View


def island(
    target: torch._ops.OpOverload,
    name: str,
    arguments: dict[str, Any],
    outputs: Sequence[View | None],
    reason: str,
    changed: Sequence[View] = (),
) -> Island:
    """The eager operator `target` over views; `changed` is what it writes beside what its schema says."""
    made: list[CallArgument] = []
    reads: list[View] = []
    writes: list[View] = []
    for formal in target._schema.arguments:
        value = arguments[formal.name]
        made.append(_argument(value))
        found = [v for v in (value if isinstance(value, list | tuple) else [value]) if isinstance(v, View)]
        written = formal.alias_info is not None and formal.alias_info.is_write
        reads.extend(found)
        if written:
            writes.extend(found)
    return Island(
        operator=target._schema.name,
        overload=target._schema.overload_name,
        arguments=tuple(made),
        reads=tuple(reads),
        writes=(*writes, *changed, *(output for output in outputs if output is not None)),
        results=tuple(outputs),
        reason=reason,
        random=torch.Tag.nondeterministic_seeded in target.tags,
        names=[name],
    )


def _argument(value: Any) -> CallArgument:
    if isinstance(value, View):
        return CallArgument(kind="tensor", value=value)
    if isinstance(value, sympy.Expr):
        return CallArgument(kind="number" if value.is_integer else "fraction", value=value)
    if isinstance(value, list | tuple) and any(isinstance(v, View) for v in value):
        return CallArgument(kind="tensors", value=tuple(value))
    if isinstance(value, list | tuple) and any(isinstance(v, sympy.Expr) for v in value):
        return CallArgument(kind="numbers", value=tuple(value))
    return CallArgument(kind="value", value=list(value) if isinstance(value, list | tuple) else value)

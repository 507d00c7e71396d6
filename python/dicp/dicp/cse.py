"""What a graph computes twice is computed once. torch's own pass for it loads all of inductor first: half a second."""

import operator
from typing import Any

import torch
from torch import fx

from dicp.program import NAMESPACES


def eliminate_common_subexpressions(graph: fx.Graph) -> fx.Graph:
    """A copy of a graph of AOTAutograd in which no two nodes compute the same.

    Results that a graph returns stay apart, as callers may write one of them; so do nodes on either side of one that
    writes, random ones, memory that nobody has written, and sizes that only data decide.
    """
    made, of = fx.Graph(), dict[fx.Node, fx.Node]()
    known: dict[Any, fx.Node] = {}
    returned = _returned(graph)
    written = 0  # how many nodes have written so far
    for node in graph.nodes:
        key = None
        if node.op == "call_function" and _repeatable(node) and not _storages(node) & returned:
            key = (written, node.target, _same(node.args, of), _same(node.kwargs, of))
        if key is not None and key in known:
            of[node] = known[key]
            continue
        of[node] = made.node_copy(node, lambda used: of[used])
        if key is not None:
            known[key] = of[node]
        written += _writes(node)
    return made


def _repeatable(node: fx.Node) -> bool:
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        tags = target.tags
        alike = torch.Tag.nondeterministic_seeded not in tags and not target._schema.is_mutable
        fresh = target.overloadpacket in (torch.ops.aten.empty, torch.ops.aten.empty_strided)
        return target.namespace in NAMESPACES and alike and not fresh and not _decided_by_data(node)
    return getattr(operator, getattr(target, "__name__", ""), None) is target and not _decided_by_data(node)


def _writes(node: fx.Node) -> bool:
    target = node.target
    if node.op != "call_function":
        return False
    if isinstance(target, torch._ops.OpOverload):
        return bool(target._schema.is_mutable)
    return isinstance(target, torch._ops.HigherOrderOperator)


def _decided_by_data(node: fx.Node) -> bool:
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    value = node.meta.get("val")
    values = value if isinstance(value, list | tuple) else [value]
    kinds = (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool)
    return any(isinstance(one, kinds) and free_unbacked_symbols(one) for one in values)


def _returned(graph: fx.Graph) -> set[int]:
    """The memory of what a graph returns."""
    found: set[int] = set()
    for node in graph.output_node().all_input_nodes:
        found |= _storages(node)
    return found


def _storages(node: fx.Node) -> set[int]:
    value = node.meta.get("val")
    return {_storage(one) for one in (value if isinstance(value, list | tuple) else [value])} - {0}


def _storage(value: Any) -> int:
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return 0
    return int(value.untyped_storage()._cdata)


def _same(value: Any, of: dict[fx.Node, fx.Node]) -> Any:
    """Equal for arguments that are the same: 1, 1.0 and True are not, nor are 0.0 and -0.0."""
    if isinstance(value, fx.Node):
        return of[value]
    if isinstance(value, list | tuple):
        return tuple(_same(item, of) for item in value)
    if isinstance(value, dict):
        return tuple((name, _same(item, of)) for name, item in value.items())
    if isinstance(value, slice):
        return (slice, _same((value.start, value.stop, value.step), of))
    return (type(value), repr(value))

"""The order in which values lie in memory: where the vendor's functions take only one, what goes between them has it.

A function that takes another order than its tensors have converts them in each call. What values are for is decided
before a graph becomes a program: loops follow the strides of their operands, whatever those are.
"""

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import fx

from dicp.dtypes import SCHEMA_NAMES
from dicp.folds import reduced_dims
from dicp.lower.arguments import named_arguments
from dicp.lower.memory import is_copy_of_elements, is_view
from dicp.lower.state import hint
from dicp.operators import Table
from diopigen.records.operators import Function, Operator, Route
from diopigen.vocabulary.layouts import LAST


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor that a node gives, by its place among the node's results."""

    node: fx.Node
    index: int | None = None

    @property
    def tensor(self) -> Any:
        given = self.node.meta.get("val")
        return given if self.index is None or given is None else given[self.index]


class Readers:
    """What the operators of a table do with the order of their tensors; `served` is as of lower()."""

    def __init__(self, table: Table, served: Callable[[str], bool]) -> None:
        self._table, self._served = table, served

    def bear_any(self, node: fx.Node) -> bool:
        """Whether the node reads a tensor in one order as well as in another."""
        return node.op == "output" or self.are_loops(node) or self.know_orders(node) or self.are_reductions(node)

    def are_loops(self, node: fx.Node) -> bool:
        bound = self._operator(node)
        return is_copy_of_elements(node) or (bound is not None and bound.kernel is not None)

    def are_reductions(self, node: fx.Node) -> bool:
        bound = self._operator(node)
        return bound is not None and bound.reduce is not None

    def know_orders(self, node: fx.Node) -> bool:
        return any(set(function.layouts) & set(LAST) for _, function in self.functions(node))

    def functions(self, node: fx.Node) -> Iterator[tuple[Route, Function]]:
        """The function that a call of the node is likely to be, if it is any."""
        bound = self._operator(node)
        if bound is None or bound.kernel is not None:
            return
        named = named_arguments(node)
        routes = [route for route in bound.routes if self._served(route.symbol) and _may_serve(route, named)]
        if routes:
            yield routes[-1], self._table.functions[routes[-1].symbol]

    def _operator(self, node: fx.Node) -> Operator | None:
        if not isinstance(node.target, torch._ops.OpOverload):
            return None
        return self._table.bound(str(node.target))


def _may_serve(route: Route, named: dict[str, Any]) -> bool:
    """Whether a route is for these plain arguments and for tensors of these ranks."""
    plain = all(named[name] == value for name, value in route.require.items())
    return plain and all(named[name].meta["val"].dim() == rank for name, rank in route.ranks.items())


def put_channels_innermost(graph: fx.Graph, readers: Readers, visible: int | None = None) -> int:
    """Changes the strides in the nodes' `val` where that saves conversions; gives how many values changed.

    The first `visible` outputs keep their strides, all where it is None.
    """
    return _Orders(graph, readers, visible).changed()


class _Orders:
    def __init__(self, graph: fx.Graph, readers: Readers, visible: int | None) -> None:
        self._graph, self._readers = graph, readers
        (output,) = (node for node in graph.nodes if node.op == "output")
        self._seen: set[Any] = set(output.args[0][:visible])  # by whoever called the graph
        self._parents: dict[Value, Value] = {}  # values that loops read and write together are one group

    def changed(self) -> int:
        values = [value for node in self._graph.nodes for value in _values(node) if _has_order(value.tensor)]
        for node in self._graph.nodes:
            for given in self._alike(node):
                self._parents[self._root(given)] = self._root(Value(node, 0) if _is_list(node) else Value(node))
        free = {value for value in values if value.tensor.is_contiguous() and self._is_free(value)}
        gains: dict[Value, int] = {}
        for node in self._graph.nodes:
            for value, elements in self._gains(node, free):
                gains[self._root(value)] = gains.get(self._root(value), 0) + elements
        chosen = [value for value in values if value in free and gains.get(self._root(value), 0) > 0]
        for value in chosen:
            _put_innermost(value)
        return len(chosen)

    def _gains(self, node: fx.Node, free: set[Value]) -> Iterator[tuple[Value, int]]:
        """Elements that a node does not convert if the values around it change, less those that it reads across."""
        for value in self._wanted(node):
            if value in free:
                yield value, _elements(value.tensor)
        if turns(node) and not all(map(self._readers.are_loops, node.users)):
            turned = _value(node.all_input_nodes[0])
            if turned in free:
                yield turned, _elements(turned.tensor)
        if (rows := self._rows(node)) is not None and rows in free:
            yield rows, -2 * _elements(rows.tensor)  # which are neither written nor read
        if self._readers.are_loops(node):
            for value in (Value(node), *_operands(node)):
                if value not in free and _has_order(value.tensor) and 0 not in value.tensor.stride():
                    yield value, _elements(value.tensor) * (1 if _lies_innermost(value.tensor) else -1)

    def _rows(self, node: fx.Node) -> Value | None:
        """What a reduction folds along its last dimension."""
        if not self._readers.are_reductions(node):
            return None
        named = named_arguments(node)
        value = _value(named[next(iter(named))])
        rank = value.tensor.dim()
        return value if reduced_dims(named.get("dim"), rank) == (rank - 1,) else None

    def _alike(self, node: fx.Node) -> list[Value]:
        """The values around a node that had better have the order of its first result."""
        if self._readers.are_loops(node):
            return _operands(node)
        if not self._readers.know_orders(node) or any(True for _ in self._wanted(node)):
            return []
        return [value for value in (*map(_value, node.all_input_nodes), *_values(node)) if _has_order(value.tensor)]

    def _wanted(self, node: fx.Node) -> Iterator[Value]:
        """The values around a call that it would convert."""
        for route, function in self._readers.functions(node):
            named = named_arguments(node)
            for param in function.params:
                source = route.sources[param.name] if param.layouts or function.innermost else ("absent",)
                match source:
                    case ["arg", name] if isinstance(named[name], fx.Node):
                        value = _value(named[name])
                    case ["return", int(index)]:
                        value = Value(node, index if _is_list(node) else None)
                    case _:
                        continue
                if not _has_order(value.tensor):
                    continue
                faster = SCHEMA_NAMES.get(value.tensor.dtype) in function.innermost
                if faster or wants_last(param.layouts, value.tensor.dim()):
                    yield value

    def _is_free(self, value: Value) -> bool:
        """Whether nobody but loops and functions that know of orders makes and reads the value."""
        node = value.node
        if not (self._readers.are_loops(node) or self._readers.know_orders(node)):
            return False
        names = [node]  # of the value
        if value.index is not None:
            names = [user for user in node.users if _is_item(user) and user.args[1] == value.index]
        readers = [user for name in names for user in name.users]
        borne = (self._readers.bear_any(user) or (turns(user) and user not in self._seen) for user in readers)
        return self._seen.isdisjoint(names) and all(borne)

    def _root(self, value: Value) -> Value:
        while value in self._parents and self._parents[value] != value:
            value = self._parents[value]
        return value


def _value(node: fx.Node) -> Value:
    if _is_item(node):
        parent, index = node.args
        assert isinstance(parent, fx.Node) and isinstance(index, int)
        return Value(parent, index)
    return Value(node)


def _values(node: fx.Node) -> list[Value]:
    """What a node makes; a part of another's results is that one's."""
    given = node.meta.get("val")
    if isinstance(given, list | tuple):
        return [Value(node, index) for index in range(len(given))]
    return [] if _is_item(node) else [Value(node)]


def _is_list(node: fx.Node) -> bool:
    return isinstance(node.meta.get("val"), list | tuple)


def _operands(node: fx.Node) -> list[Value]:
    """The operands of a loop that have an element for each of its own."""
    made = node.meta.get("val")
    given = [_value(operand) for operand in node.all_input_nodes]
    if not isinstance(made, torch.Tensor) or not _has_order(made):
        return []
    return [value for value in given if _has_order(value.tensor) and value.tensor.shape == made.shape]


def _elements(tensor: torch.Tensor) -> int:
    """Of the sizes that the graph was traced with."""
    return prod(hint(size) for size in tensor.shape)


def _is_item(node: fx.Node) -> bool:
    return node.target is operator.getitem


def _has_order(tensor: Any) -> bool:
    return isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided and tensor.dim() in LAST.values()


def _lies_innermost(tensor: torch.Tensor) -> bool:
    """Whether channels are the fastest dimension: a part of a tensor in rows has gaps, and is none of those."""
    strides = [
        hint(stride) for stride, size in zip(tensor.stride()[2:], tensor.shape[2:], strict=True) if hint(size) > 1
    ]
    return hint(tensor.size(1)) > 1 and all(hint(tensor.stride(1)) < stride for stride in strides)


def wants_last(layouts: Sequence[str], rank: int) -> bool:
    """Whether a function takes tensors of the rank with channels innermost only: other words take contiguous ones."""
    return any(LAST.get(name) == rank for name in layouts) and all(name in LAST for name in layouts)


def turns(node: fx.Node) -> bool:
    """Whether a view has the channels of images last, and no views of its own: follow_turned() gives it its strides."""
    if node.target is not torch.ops.aten.permute.default or not _has_order(node.meta["val"]):
        return False
    rank = node.meta["val"].dim()
    dims = [dim % rank for dim in node.args[1]]  # type: ignore[union-attr]
    return dims == [0, *range(2, rank), 1] and not any(map(is_part, node.users))


def is_part(node: fx.Node) -> bool:
    """Whether a call gives a view of its argument, whose strides follow from the argument's."""
    return isinstance(node.target, torch._ops.OpOverload) and is_view(node.target)


def follow_turned(node: fx.Node) -> None:
    """Gives the views that turn a value the strides that follow from its own."""
    for user in filter(turns, node.users):
        user.meta["val"] = node.meta["val"].movedim(1, -1)


def _put_innermost(value: Value) -> None:
    node, index = value.node, value.index
    if index is None:
        node.meta["val"] = with_channels_innermost(value.tensor)
        follow_turned(node)
        return
    given = list(node.meta["val"])
    given[index] = with_channels_innermost(given[index])
    node.meta["val"] = type(node.meta["val"])(given)
    for user in node.users:
        if _is_item(user) and user.args[1] == index:
            _put_innermost(Value(user))


def with_channels_innermost(tensor: torch.Tensor) -> torch.Tensor:
    """A traced tensor of the same sizes."""
    with tensor.fake_mode:  # type: ignore[attr-defined]
        return tensor.detach().movedim(1, -1).contiguous().movedim(-1, 1)

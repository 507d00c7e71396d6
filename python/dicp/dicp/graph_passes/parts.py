"""Nodes that stand in the place of another, each with the value that it would give."""

import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx

from dicp.lower.arguments import named_arguments

_aten = torch.ops.aten


class Parts:
    """Nodes in place of one; their names begin with its name, so that none has the name of another graph's node."""

    def __init__(self, node: fx.Node, elements: torch.Tensor) -> None:
        self.node, self.named = node, named_arguments(node)
        self.mode, self.dtype = elements.fake_mode, elements.dtype  # type: ignore[attr-defined]
        self._shape = elements.shape

    def made(self, target: Any, *args: Any, value: Any = None, **kwargs: Any) -> fx.Node:
        """A call; `value` is what it gives, where torch cannot say that."""
        graph = self.node.graph
        with graph.inserting_before(self.node):
            name = f"{self.node.name}_{getattr(target, '__name__', 'part').partition('.')[0]}"
            made = graph.create_node("call_function", target, args, kwargs, name=name)
        with self.mode:
            made.meta["val"] = (
                target(*fx.node.map_arg(args, lambda node: node.meta["val"]), **kwargs) if value is None else value
            )
        return made

    def traced(self, function: Callable[..., Any], *nodes: fx.Node, table: Mapping[Any, Any] | None = None) -> Any:
        """The results of a function of torch for the values of nodes, as what it calls; `table`: of decompositions."""
        graph = self.node.graph
        with self.mode:
            made = make_fx(function, table)(*(node.meta["val"] for node in nodes)).graph
        placeholders = [node for node in made.nodes if node.op == "placeholder"]
        with graph.inserting_before(self.node):
            return graph.graph_copy(made, dict(zip(placeholders, nodes, strict=True)))

    def around(self, vector: fx.Node) -> fx.Node:
        """A value of each channel, to broadcast over the elements."""
        return self.made(_aten.view.default, vector, [self._shape[1], *(1 for _ in self._shape[2:])])

    def cast(self, node: fx.Node, dtype: torch.dtype) -> fx.Node:
        """In a dtype."""
        if node.meta["val"].dtype == dtype:
            return node
        return self.made(_aten._to_copy.default, node, dtype=dtype)

    def product(self, a: fx.Node, b: Any) -> fx.Node:
        """Of two operands, which broadcast."""
        return self.made(_aten.mul.Tensor, a, b)


def stand_in(node: fx.Node, result: fx.Node) -> None:
    """Puts a result in a node's place; in torch's trace it has the memory of the node's value, which views share."""
    value, made = node.meta["val"], result.meta["val"]
    if result.target is not operator.getitem and (value.dtype, value.shape) == (made.dtype, made.shape):
        result.meta["val"] = value
    node.replace_all_uses_with(result)
    node.graph.erase_node(node)


def replace_results(node: fx.Node, result: Callable[[int], fx.Node]) -> None:
    """Puts results in the place of those of a node that gives several."""
    for user in list(node.users):
        assert user.target is operator.getitem and isinstance(user.args[1], int)
        stand_in(user, result(user.args[1]))
    node.graph.erase_node(node)

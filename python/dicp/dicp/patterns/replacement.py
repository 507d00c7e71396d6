"""The nodes that stand where an idiom stood, if they give a tensor of the same kind."""

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import statically_known_true

from dicp.patterns.indexing import example, is_tensor
from dicp.patterns.match import Match
from dicp.patterns.table import Pattern, Tree
from dicp.patterns.terms import Terms

_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": lambda one, other: one if isinstance(other, int | float) and other == 1 else one / other,
}
# Operators of a view that is taken as well of tensors with other strides, and those that only look at elements' order.
_VIEWS_OF_ANY = {"transpose", "permute", "unsqueeze", "squeeze", "slice", "select", "expand"}
_NEEDS_STRIDES = {"view", "view_as", "as_strided", "stride", "is_contiguous", "flatten", "unflatten", "storage_offset"}


def replacement(graph: fx.Graph, root: fx.Node, pattern: Pattern, match: Match) -> fx.Node | None:
    """What comes before `root` instead of it; None, and nothing comes, where it is of another dtype or size."""
    assert pattern.becomes is not None
    made = _Made(graph, pattern.parts, match)
    with graph.inserting_before(root), torch.no_grad(), _quiet(example(root)):
        node = _fitting(made, pattern.becomes, root)
        made.forget(but=node)
    return node


def _fitting(made: "_Made", tree: Tree, root: fx.Node) -> fx.Node | None:
    held = example(root)
    try:
        node: fx.Node = made.of(tree)
    except (RuntimeError, TypeError, ValueError):  # torch refuses what the idiom was given
        return None
    if not _is_alike(example(node), held):
        return None
    if _equal(example(node).stride(), held.stride()) or not _is_seen_in_strides(root):
        return node
    node = made.of(("call", "contiguous", ("node", node)))
    return node if _equal(example(node).stride(), held.stride()) else None


class _Made:
    """Makes nodes with what tracing knows of their values."""

    def __init__(self, graph: fx.Graph, parts: dict[str, tuple[Tree, ...]], match: Match) -> None:
        self._graph, self._parts, self._match = graph, parts, match
        self._nodes: list[fx.Node] = []
        self._known: dict[Tree, Any] = {}

    def of(self, tree: Tree) -> Any:
        """A node, a number or a list of them."""
        match tree:
            case ("number", value) | ("word", value) | ("dtype", value) | ("node", value):
                return value
            case ("element", name):
                return self._match.elements[name]
            case ("input", name):
                return self._match.inputs[name]
            case ("part", name):
                return self.of(self._parts[name][0])
            case ("call", "list", *items):
                return [self.of(item) for item in items]
        if tree not in self._known:  # what stands twice is computed once
            self._known[tree] = self._called(tree[1], [self.of(arg) for arg in tree[2:]])
        return self._known[tree]

    def _called(self, op: str, args: list[Any]) -> Any:
        if op in _ARITHMETIC and not any(map(is_tensor, args)):
            return _ARITHMETIC[op](*map(_number, args))
        match op, args:
            case "sqrt", [number] if not is_tensor(number):
                return torch.sym_sqrt(_number(number))
            case "usual", [number, default]:
                return _usual(number, default)
            case "size", [tensor, dim]:
                length = example(tensor).shape[dim]
                return length if isinstance(length, int) else self._node(torch.ops.aten.sym_size.int, (tensor, dim), {})
            case "item", _:
                return self._node(operator.getitem, tuple(args), {})
            case "cast", [tensor, dtype] if example(tensor).dtype == dtype:
                return tensor
            case "cast", _:
                return self._node(torch.ops.aten.to.dtype, tuple(args), {})
        packet = getattr(torch.ops.aten, op)
        return self._node(packet, *_by_keyword(packet, args))

    def _node(self, target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> fx.Node:
        fakes, named = fx.node.map_arg((args, kwargs), example)
        value = target(*fakes, **named)
        node = self._graph.call_function(target, args, kwargs)
        node.meta["example_value"] = value
        self._nodes.append(node)
        return node

    def forget(self, but: fx.Node | None = None) -> None:
        """Takes away what nobody reads, `but` the node that is the result."""
        for node in reversed(self._nodes):
            if not node.users and node is not but:
                self._graph.erase_node(node)


def _number(value: Any) -> Any:
    return example(value) if isinstance(value, fx.Node) else value


def _usual(number: Any, default: Any) -> Any:
    """Raises ValueError for a symbol that is not the default."""
    if isinstance(number, int | float):
        return number
    if not statically_known_true(number == default):
        raise ValueError("a number that only the sizes decide")
    return None


def _by_keyword(packet: Any, args: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments behind the star of a schema that takes so many by their names."""
    for overload in packet.overloads():
        formals = getattr(packet, overload)._schema.arguments
        places = sum(1 for formal in formals if not formal.kwarg_only)
        if len(formals) >= len(args) and "out" not in overload:
            named = {formal.name: arg for formal, arg in zip(formals[places:], args[places:], strict=False)}
            return tuple(args[:places]), named
    return tuple(args), {}


def _quiet(held: Any) -> Any:
    """Whatever is asked of symbols here is no guard."""
    mode = held.fake_mode
    return mode.shape_env.suppress_guards() if mode.shape_env is not None else torch.no_grad()


def _is_alike(made: Any, held: torch.Tensor) -> bool:
    if not isinstance(made, torch.Tensor) or made.dtype != held.dtype or made.device != held.device:
        return False
    return made.dim() == held.dim() and _equal(made.shape, held.shape)


def _equal(one: Any, other: Any) -> bool:
    return all(statically_known_true(a == b) for a, b in zip(one, other, strict=True))


def _is_seen_in_strides(node: fx.Node) -> bool:
    """Whether the program would notice other strides: it returns the tensor, or views it by them."""
    terms = Terms()
    for user in node.users:
        name = str(user.target) if user.op == "call_method" else getattr(user.target, "__name__", "")
        if user.op == "output" or name in _NEEDS_STRIDES:
            return True
        term = terms.term(user)
        if term is not None and term.op in _VIEWS_OF_ANY and _is_seen_in_strides(user):
            return True
    return False

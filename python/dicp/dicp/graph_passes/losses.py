"""The cross entropy and its gradient as loops over rows, which read what was given and write no probabilities.

Torch takes it as a choice among the classes after the logarithm of the softmax, which has as many elements as there are
classes, is written once and read twice. Two numbers of each row are enough, its largest element and the logarithm of a
sum, for the class that is chosen as for the gradient; what reaches that from the choice is zero but for one class.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import fx
from torch.nn._reduction import get_enum

from dicp.folds import worth_a_row_kernel
from dicp.graph_passes.aliases import ALIASES
from dicp.graph_passes.parts import Parts, replace_results, stand_in
from dicp.lower.arguments import named_arguments
from dicp.lower.memory import is_conversion

_aten = torch.ops.aten
_CHOICE, _SOFTMAX = _aten.nll_loss_forward.default, _aten._log_softmax.default
_CHOICE_GRADIENT, _SOFTMAX_GRADIENT = _aten.nll_loss_backward.default, _aten._log_softmax_backward_data.default
Decompositions: TypeAlias = Mapping[torch._ops.OpOverload, Callable[..., Any]]
_NONE, _MEAN = map(get_enum, ("none", "mean"))


def join_losses(graph: fx.Graph, decompositions: Decompositions) -> fx.Graph:
    """The graph, in which loops stand for the loss and its gradient where no class has a weight."""
    for node in list(graph.nodes):
        if node.target in ALIASES and node.args[0].target is _SOFTMAX:
            node.replace_all_uses_with(node.args[0], delete_user_cb=lambda user: user.op != "output")
            if not node.users:
                graph.erase_node(node)
        if node.target is _SOFTMAX_GRADIENT and _is_of_a_choice(node):
            choice = node.args[0]
            stand_in(node, _Slope(node, choice).result)
            graph.erase_node(choice)
    for node in list(graph.nodes):
        if node.target is _SOFTMAX and _is_for_a_choice(node):
            logarithms = _Logarithms(node)
            for user in list(node.users):
                if user.target is _CHOICE:
                    replace_results(user, _Choice(user, logarithms.wide, decompositions).result)
                elif user.meta["val"].dtype == logarithms.wide.meta["val"].dtype and _converts(user):
                    stand_in(user, logarithms.wide)
            stand_in(node, logarithms.result)
    return graph


def _is_of_a_choice(node: fx.Node) -> bool:
    choice = named_arguments(node)["grad_output"]
    return choice.target is _CHOICE_GRADIENT and len(choice.users) == 1 and _has_rows(node) and _is_plain(choice)


def _is_for_a_choice(node: fx.Node) -> bool:
    """Whether all that else reads the logarithms are loops, and one takes each row."""
    choices = [user for user in node.users if user.target is _CHOICE]
    others = [user for user in node.users if user.target is not _CHOICE]
    if not choices or not _has_rows(node) or not worth_a_row_kernel(*node.meta["val"].shape):
        return False
    return all(map(_is_plain, choices)) and all(user.target is _aten.exp.default or _converts(user) for user in others)


def _has_rows(node: fx.Node) -> bool:
    shape = node.meta["val"].shape
    return len(shape) == 2 and named_arguments(node)["dim"] in (1, -1) and all(isinstance(size, int) for size in shape)


def _converts(node: fx.Node) -> bool:
    """Whether the node is its operand in a dtype, there where it is."""
    return is_conversion(node) and node.all_input_nodes[0].meta["val"].device == node.meta["val"].device


def _is_plain(choice: fx.Node) -> bool:
    return named_arguments(choice)["weight"] is None


class _Logarithms(Parts):
    """Of the softmax, by torch's own parts."""

    def __init__(self, node: fx.Node) -> None:
        value = node.meta["val"]
        super().__init__(node, value)
        given = self.cast(self.named["self"], torch.promote_types(value.dtype, torch.float32))
        self.wide = self.traced(partial(_apart(_SOFTMAX), dim=1, half_to_float=False), given)
        self.result = self.cast(self.wide, value.dtype)


class _Choice(Parts):
    """The loss by torch's own parts, of which the one that chooses takes an element of each row of what loops read."""

    def __init__(self, node: fx.Node, logarithms: fx.Node, table: Decompositions) -> None:
        super().__init__(node, logarithms.meta["val"])
        words = {name: self.named[name] for name in ("weight", "reduction", "ignore_index")}

        def parts(*values: Any) -> tuple[Any, ...]:
            return tuple(_apart(_CHOICE)(*values, **words))

        self._results = self.traced(parts, logarithms, self.named["target"], table=table)
        for user in list(logarithms.users):
            if user.target is _aten.gather.default:
                stand_in(user, _Chosen(user).of(logarithms))

    def result(self, index: int) -> fx.Node:
        return self.cast(self._results[index], self.node.meta["val"][index].dtype)


class _Chosen(Parts):
    """What a gather takes of each row."""

    def __init__(self, gather: fx.Node) -> None:
        super().__init__(gather, gather.meta["val"])

    def of(self, node: fx.Node) -> fx.Node:
        """The same of a node that loops compute, of what they read."""
        value, operands = node.meta["val"], node.all_input_nodes
        if value.shape[1] == 1:
            return node
        if node.target is _aten.sub.Tensor:
            return self.made(node.target, *map(self.of, operands))
        if _converts(node):
            return self.cast(self.of(operands[0]), value.dtype)
        return self.made(_aten.gather.default, node, *self.node.args[1:])


def _apart(operator: torch._ops.OpOverload) -> Callable[..., Any]:
    taken: Callable[..., Any] = torch._decomp.get_decompositions([operator])[operator]
    return taken


class _Slope(Parts):
    """(softmax - 1 where the class is the row's own) times what the loss does to the row."""

    def __init__(self, node: fx.Node, choice: fx.Node) -> None:
        value = node.meta["val"]
        super().__init__(node, value)
        out, chosen = self.named["output"], named_arguments(choice)
        own = self.made(_aten.unsqueeze.default, chosen["target"], 1)
        softmax = self.made(_aten.exp.default, self.cast(out, torch.promote_types(value.dtype, torch.float32)))
        classes = self.made(_aten.arange.default, value.shape[1], dtype=torch.int64, device=value.device)
        less = self.made(_aten.sub.Tensor, softmax, 1)
        slope = self.made(_aten.where.self, self.made(_aten.eq.Tensor, classes, own), less, softmax)
        self.result = self.cast(self.product(slope, self._of_rows(chosen, own, softmax.meta["val"].dtype)), value.dtype)

    def _of_rows(self, chosen: dict[str, Any], own: fx.Node, wide: torch.dtype) -> fx.Node:
        """[rows, 1], zero of the rows that are ignored."""
        given, ignored = chosen["grad_output"], self.made(_aten.eq.Scalar, own, chosen["ignore_index"])
        if chosen["reduction"] == _NONE:
            given = self.made(_aten.unsqueeze.default, given, 1)
        of_rows = self.cast(self.made(_aten.masked_fill.Scalar, given, ignored, 0.0), wide)
        return self.made(_aten.div.Tensor, of_rows, chosen["total_weight"]) if chosen["reduction"] == _MEAN else of_rows

"""The gradient of the cross entropy as one loop over its elements.

Torch takes it as that of the logarithm of the softmax after that of a choice among the classes, which is zero but for
one class of each row: both write, and the second reads, as many elements as there are classes.
"""

from typing import Any

import torch
from torch import fx
from torch.nn._reduction import get_enum

from dicp.graph_passes.parts import Parts, stand_in
from dicp.lower.arguments import named_arguments

_aten = torch.ops.aten
_CHOICE, _SOFTMAX = _aten.nll_loss_backward.default, _aten._log_softmax_backward_data.default
_NONE, _MEAN = map(get_enum, ("none", "mean"))


def join_losses(graph: fx.Graph) -> fx.Graph:
    """The graph, in which a loop of elements stands for both gradients where no class has a weight."""
    for node in list(graph.nodes):
        if node.target is _SOFTMAX and _is_of_a_choice(node):
            choice = node.args[0]
            stand_in(node, _Slope(node, choice).result)
            graph.erase_node(choice)
    return graph


def _is_of_a_choice(node: fx.Node) -> bool:
    named = named_arguments(node)
    choice, shape = named["grad_output"], node.meta["val"].shape
    if choice.target is not _CHOICE or len(choice.users) != 1 or len(shape) != 2 or named["dim"] not in (1, -1):
        return False
    return named_arguments(choice)["weight"] is None and all(isinstance(size, int) for size in shape)


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

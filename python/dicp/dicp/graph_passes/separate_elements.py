"""The elementwise part of operators as nodes of its own, which share loops with others, for vendors that want it.

A batch norm in training becomes a call for the sums of each channel and its elements: a chip that reads those again
anyway, once all sums are there, reads them for what comes next as well. One whose caches hold a channel does better
with a single call. A convolution leaves its bias to the loop that reads it,
but where that would round twice, a product of one row its sums.
"""

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from dicp.graph_passes.parts import Parts, replace_results, stand_in
from dicp.graph_passes.row_products import PRODUCT, RowProduct, is_row_product
from dicp.lower.arguments import named_arguments
from dicp.operators import Table, overload_of

_aten = torch.ops.aten
_FORWARD = (_aten._native_batch_norm_legit_functional.default, _aten._native_batch_norm_legit.no_stats)
_BACKWARD = _aten.native_batch_norm_backward.default
_CONVOLUTION = _aten.convolution.default
_STATISTICS, _SUMS = _aten.batch_norm_stats.default, _aten.batch_norm_backward_reduce.default


def separate_elements(graph: fx.Graph, table: Table, served: Callable[[str], bool]) -> fx.Graph:
    """The graph, in which operators are separated where the vendor wants that and has functions for what is left."""
    wanted = table.separate_elements
    norms = "batch_norm" in wanted and all(_has(table, served, of) for of in (_STATISTICS, _SUMS))
    for node in list(graph.nodes):
        if norms and node.target in _FORWARD and _is_in_training(node, "training"):
            replace_results(node, _Forward(node).result)
        elif norms and node.target is _BACKWARD and _is_in_training(node, "train"):
            replace_results(node, _Backward(node).result)
        elif "convolution2d" in wanted and node.target is _CONVOLUTION and _adds_to_planes(node):
            stand_in(node, _Biased(node).result)
        elif "bmm" in wanted and node.target is PRODUCT and is_row_product(node):
            stand_in(node, RowProduct(node).result)
    return graph


def _adds_to_planes(node: fx.Node) -> bool:
    """Whether the convolution, of planes, has a bias; sums of halves take it before they are rounded."""
    value = node.meta["val"]
    rounds = torch.promote_types(value.dtype, torch.float32) != value.dtype
    return named_arguments(node)["bias"] is not None and value.dim() == 4 and not rounds


def _has(table: Table, served: Callable[[str], bool], target: torch._ops.OpOverload) -> bool:
    bound = table.operators.get(overload_of(str(target)))
    return bound is not None and any(served(route.symbol) for route in bound.routes)


def _is_in_training(node: fx.Node, word: str) -> bool:
    named = named_arguments(node)
    x = named["input"].meta["val"]
    return named[word] is True and x.numel() != 0 and all(isinstance(size, int) for size in x.shape)


class _Biased(Parts):
    """A convolution and its bias."""

    def __init__(self, node: fx.Node) -> None:
        super().__init__(node, node.meta["val"])
        given = [None if name == "bias" else value for name, value in self.named.items()]
        with self.mode:
            value = torch.empty_like(node.meta["val"])
        products = self.made(_CONVOLUTION, *given, value=value)
        self.result = self.made(_aten.add.Tensor, products, self.around(self.named["bias"]))


class _Norm(Parts):
    """What both directions of a batch norm consist of."""

    def __init__(self, node: fx.Node) -> None:
        self.x = named_arguments(node)["input"]
        value = self.x.meta["val"]
        super().__init__(node, value)
        self.channels = value.shape[1]
        self.count, self.wide = value.numel() // self.channels, torch.promote_types(value.dtype, torch.float32)

    def sums(self, target: Any, *args: Any, results: int) -> list[fx.Node]:
        """The first two results of a function for the sums of each channel."""
        value = self.x.meta["val"]
        with self.mode:
            given = tuple(value.new_empty(self.channels, dtype=self.wide) for _ in range(results))
        node = self.made(target, *args, value=given)
        return [self.made(operator.getitem, node, index, value=given[index]) for index in range(2)]

    def scale(self, invstd: fx.Node) -> fx.Node:
        """What the centered elements of a channel are multiplied by."""
        weight = self.named["weight"]
        return invstd if weight is None else self.product(invstd, weight)

    def centered(self, mean: fx.Node) -> fx.Node:
        """In the wide type, which the mean has."""
        return self.made(_aten.sub.Tensor, self.x, self.around(mean))


class _Forward(_Norm):
    """out, mean, invstd, and what becomes of the running statistics."""

    def __init__(self, node: fx.Node) -> None:
        super().__init__(node)
        # Without epsilon, which would swallow the digits of a small variance.
        self.mean, inverse = self.sums(_STATISTICS, self.x, 0.0, results=2)
        self.variance = self.made(_aten.reciprocal.default, self.product(inverse, inverse))
        self.invstd = self.made(_aten.rsqrt.default, self.made(_aten.add.Tensor, self.variance, self.named["eps"]))

    def result(self, index: int) -> fx.Node:
        return (self._out, lambda: self.mean, lambda: self.invstd, self._running_mean, self._running_var)[index]()

    def _out(self) -> fx.Node:
        bias, out = self.named["bias"], self.product(self.centered(self.mean), self.around(self.scale(self.invstd)))
        return self.cast(out if bias is None else self.made(_aten.add.Tensor, out, self.around(bias)), self.dtype)

    def _running_mean(self) -> fx.Node:
        return self._blended(self.named["running_mean"], self.mean)

    def _running_var(self) -> fx.Node:
        """With the variance of a sample."""
        share = self.count / (self.count - 1) if self.count > 1 else float("nan")
        return self._blended(self.named["running_var"], self.product(self.variance, share))

    def _blended(self, running: fx.Node, found: fx.Node) -> fx.Node:
        momentum, dtype = self.named["momentum"], running.meta["val"].dtype
        kept = self.product(self.cast(running, torch.promote_types(dtype, self.wide)), 1 - momentum)
        return self.cast(self.made(_aten.add.Tensor, kept, self.product(found, momentum)), dtype)


class _Backward(_Norm):
    """The gradients of input, weight and bias."""

    def __init__(self, node: fx.Node) -> None:
        super().__init__(node)
        self.grad = self.named["grad_out"]
        self.mean, self.invstd = self.named["save_mean"], self.named["save_invstd"]
        given = (self.grad, self.x, self.mean, self.invstd, None, True, False, False)
        self.sum, self.moment = self.sums(_SUMS, *given, results=4)  # of the gradient, and of it times centred input

    def result(self, index: int) -> fx.Node:
        return (self._input, self._weight, self._bias)[index]()

    def _input(self) -> fx.Node:
        mean = self.product(self.sum, 1 / self.count)
        slope = self.product(self.product(self.product(self.invstd, self.invstd), self.moment), 1 / self.count)
        rest = self.made(_aten.sub.Tensor, self.grad, self.around(mean))
        rest = self.made(_aten.sub.Tensor, rest, self.product(self.centered(self.mean), self.around(slope)))
        return self.cast(self.product(rest, self.around(self.scale(self.invstd))), self.dtype)

    def _weight(self) -> fx.Node:
        return self.cast(self.product(self.moment, self.invstd), self.node.meta["val"][1].dtype)

    def _bias(self) -> fx.Node:
        return self.cast(self.sum, self.node.meta["val"][2].dtype)

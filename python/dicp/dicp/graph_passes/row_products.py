"""Products of a row and a matrix that is made of halves, e.g. of a token's query and the keys before it, as loops.

A function of the library takes the matrix in the dtype that it computes in, so that all of it is written before it is
read once. A loop multiplies what it reads as halves, and sums.
"""

import torch
from torch import fx

from dicp.graph_passes.parts import Parts
from dicp.lower.memory import is_conversion, is_view

_aten = torch.ops.aten
PRODUCT = _aten.bmm.default

_MOST_ACROSS = 1 << 20  # elements of a matrix that is summed along its columns: loops read those in small pieces


def is_row_product(node: fx.Node) -> bool:
    """Whether the first factor has one row each, and a loop is worth it."""
    row, matrix = node.all_input_nodes[0], node.all_input_nodes[-1]
    value = matrix.meta["val"]
    sizes = (*row.meta["val"].shape, *value.shape)
    if not all(isinstance(size, int) for size in sizes) or sizes[1] != 1 or 0 in sizes:
        return False
    along = value.stride(1) == 1 or value.numel() <= _MOST_ACROSS
    return along and value.dtype == torch.float32 and _are_halves(matrix)


def _are_halves(node: fx.Node) -> bool:
    """Whether the tensor is one of halves but for factors, and nobody else reads what lies between."""
    while len(node.users) == 1 and isinstance(node.target, torch._ops.OpOverload):
        source = node.args[0]
        assert isinstance(source, fx.Node)
        if is_conversion(node):
            return source.meta["val"].dtype in (torch.float16, torch.bfloat16)
        if not is_view(node.target) and node.target is not _aten.mul.Scalar:
            return False
        node = source
    return False


class RowProduct(Parts):
    """row [B, 1, K] times matrix [B, K, N]."""

    def __init__(self, node: fx.Node) -> None:
        super().__init__(node, node.meta["val"])
        row, turned = self.named["self"], self.made(_aten.transpose.int, self.named["mat2"], 1, 2)
        with self.mode:  # in the order that is summed
            value = torch.empty(turned.meta["val"].shape, dtype=self.dtype, device=node.meta["val"].device)
        products = self.made(_aten.mul.Tensor, row, turned, value=value)
        self.result = self.made(_aten.unsqueeze.default, self.made(_aten.sum.dim_IntList, products, [-1]), 1)

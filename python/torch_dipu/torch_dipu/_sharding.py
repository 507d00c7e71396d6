"""How DTensor divides two operators that torch calls on ``dipu`` and not on other devices.

A linear layer and a product of matrices are one operator each on this device, and so are their gradients, which torch
takes apart elsewhere before DTensor sees them.
"""

from typing import Any

_registered = False


def register() -> None:
    """Tell DTensor; does nothing the second time."""
    global _registered
    if _registered:
        return
    import torch
    from torch.distributed.tensor.experimental import register_sharding

    register_sharding(torch.ops.aten.linear_backward.default)(_linear_backward)
    register_sharding(torch.ops.aten.matmul_backward.default)(_matmul_backward)
    _registered = True


def _linear_backward(x: Any, dy: Any, weight: Any, output_mask: list[bool]) -> list[tuple[list[Any], list[Any]]]:
    """The placements of (dx, dW, db) that follow from those of (x, dy, W), along one dimension of the mesh.

    With x of shape (..., in), dy of (..., out) and W of (out, in): dx = dy W; dW and db are the sums over the batch of
    dy^T x and of dy.
    """
    from torch.distributed.tensor import Partial, Replicate, Shard

    replicate, partial = Replicate(), Partial()
    last = x.ndim - 1
    columns, rows = Shard(0), Shard(1)
    rules = [
        ([replicate, replicate, replicate], [replicate, replicate, replicate]),
        # Each rank has some outputs of the layer.
        ([partial, columns, columns], [replicate, Shard(last), columns]),
        # Each rank has some inputs of the layer.
        ([Shard(last), rows, replicate], [Shard(last), replicate, rows]),
        # Each rank has a part of the sum that dy is.
        ([partial, partial, partial], [replicate, partial, replicate]),
        # Each rank has a part of the batch.
        *(([Shard(dim), partial, partial], [Shard(dim), Shard(dim), replicate]) for dim in range(last)),
    ]
    return _masked(rules, output_mask)


def _matmul_backward(dy: Any, a: Any, b: Any, mask: list[bool]) -> list[tuple[list[Any], list[Any]]]:
    """The placements of (da, db) that follow from those of (dy, a, b), along one dimension of the mesh.

    With a of shape (..., m, k), b of (..., k, n) and dy of (..., m, n): da = dy b^T and db = a^T dy, summed over the
    dimensions in which one of them was repeated.
    """
    from torch.distributed.tensor import Partial, Replicate, Shard

    replicate, partial = Replicate(), Partial()
    rules = [
        ([replicate, replicate], [replicate, replicate, replicate]),
        ([partial, partial], [partial, replicate, replicate]),
    ]
    if a.ndim >= 2 and b.ndim >= 2:
        m, n = Shard(dy.ndim - 2), Shard(dy.ndim - 1)
        a_rows, a_columns = Shard(a.ndim - 2), Shard(a.ndim - 1)
        b_rows, b_columns = Shard(b.ndim - 2), Shard(b.ndim - 1)
        rules += [
            ([a_rows, partial], [m, a_rows, replicate]),
            ([partial, b_columns], [n, replicate, b_columns]),
            ([a_columns, b_rows], [replicate, a_columns, b_rows]),
        ]
        for dim in range(dy.ndim - 2):
            batch = Shard(dim)
            if b.ndim == 2:
                rules.append(([batch, partial], [batch, batch, replicate]))
            elif a.shape[:-2] == b.shape[:-2]:
                rules.append(([batch, batch], [batch, batch, batch]))
    return _masked(rules, mask)


def _masked(rules: list[tuple[list[Any], list[Any]]], mask: list[bool]) -> list[tuple[list[Any], list[Any]]]:
    """The rules without placements of the outputs that are not wanted, and with none for the mask itself."""
    return [
        ([out if wanted else None for out, wanted in zip(outputs, mask, strict=True)], [*inputs, None])
        for outputs, inputs in rules
    ]

"""Reductions of rows as folds, so that they share a loop with what is around them."""

from typing import Any

import torch
from torch import fx

from dicp.dtypes import compute_dtype
from dicp.folds import FOLDS, kept_strides, reduced_dims, worth_a_row_kernel
from dicp.loops import row_fold
from dicp.lower.arguments import named_arguments
from dicp.lower.state import State, computes
from dicp.program import Step, View, product


def fold_of_rows(state: State, node: fx.Node, reduction: str | None, value: Any) -> View | None:
    """The result of a reduction of rows that lie in memory one by one; None for anything else."""
    if reduction is None or not isinstance(value, torch.Tensor):
        return None
    fold = FOLDS[reduction]
    source = state.values[node.args[0]]  # type: ignore[index]
    if not source.sizes or not computes(source) or value.dtype != source.dtype or not value.dtype.is_floating_point:
        return None
    dims = reduced_dims(named_arguments(node).get("dim"), len(source.sizes))
    columns = product([source.sizes[d] for d in dims])
    rows = product([size for d, size in enumerate(source.sizes) if d not in dims])
    if not worth_a_row_kernel(rows, columns):
        return None
    target = state.new(value)
    kept = View(
        root=target.root,
        dtype=target.dtype,
        sizes=tuple(1 if d in dims else size for d, size in enumerate(source.sizes)),
        strides=kept_strides(target, dims, len(source.sizes)),
        offset=0,
    )

    def step(read: View) -> Step:
        return Step(
            kernel=fold,
            operands=(read,),
            compute=compute_dtype(value.dtype),
            dtype=value.dtype,
            rounds=False,
            name=node.name,
            fold=True,
        )

    kernel = row_fold(source, kept, dims, step, node.name)
    if kernel is None:
        return None
    state.instructions.append(kernel)
    return target

"""The CPU's operators on halves, each computed in float64 and rounded once: what a chain of them gives at its best."""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from diopigen.vocabulary.torch_dtypes import HALVES


class Rounded(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While it is on, operators of halves that name no dtype compute in float64; forward and backward."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        leaves = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, torch.Tensor)]
        floating = {leaf.dtype for leaf in leaves if leaf.is_floating_point()}
        if function.is_view or kwargs.get("dtype") is not None or len(floating) != 1 or not floating & {*HALVES}:
            return function(*args, **kwargs)
        (half,) = floating
        return _computed(function, args, kwargs, half)


def _computed(function: Any, args: Any, kwargs: Any, half: torch.dtype) -> Any:
    copies: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def widened(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.dtype != half:
            return value
        return copies.setdefault(id(value), (value, value.to(torch.float64)))[1]

    result = function(*tree_map(widened, args), **tree_map(widened, kwargs))
    if function._schema.is_mutable:
        for value, copy in copies.values():
            value.copy_(copy)
    originals = {id(copy): value for value, copy in copies.values()}

    def rounded(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) in originals:
            return originals[id(value)]
        return value.to(half) if value.dtype == torch.float64 else value

    return tree_map(rounded, result)

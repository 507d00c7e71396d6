"""Lists as an operator for each tensor, so that an optimizer is one loop per parameter; roots as operators."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch

from diopigen.vocabulary.torch_releases import product_and_sum

_PREFIX = "aten::_foreach_"
_OTHER_NAMES = {"norm": "linalg_vector_norm"}
_BY_KEYWORD = {"addcmul": "value", "addcdiv": "value"}  # the last argument is one behind the star of the operator
_NUMBERS = {"maximum": "clamp_min", "minimum": "clamp_max"}  # where the second operand is a number

Decomposition = Callable[..., Any]


def decompositions() -> dict[torch._ops.OpOverload, Decomposition]:
    """What AOTAutograd takes apart: torch's loops over lists, a product with a sum as one operator, roots."""
    aten = torch.ops.aten
    of_torch: Any = torch._decomp.get_decompositions([aten.native_dropout_backward, aten.fill])
    found: dict[torch._ops.OpOverload, Decomposition] = {
        **_of_lists(),
        **of_torch,
        aten.pow.Tensor_Scalar: _root,
        aten._safe_softmax.default: _safe_softmax,
        aten.index_copy.default: _index_copy,
        aten.sum.default: _count,
        aten.sum.dim_IntList: _count,
        aten.index.Tensor: _index,
        aten._fused_rms_norm.default: _rms_norm,
    }
    fma = product_and_sum()
    return found if fma is None else {**found, fma: _product_and_sum}


@cache
def _of_lists() -> dict[torch._ops.OpOverload, Decomposition]:
    found: dict[torch._ops.OpOverload, Decomposition] = {}
    for name in sorted(n for n in torch._C._dispatch_get_all_op_names() if n.startswith(_PREFIX)):
        base, _, overload = name.removeprefix(_PREFIX).partition(".")
        # Those that write their lists are made of these; of numbers in a tensor only data decide.
        if base.endswith("_") or "out" in overload or (base in _BY_KEYWORD and overload == "Tensor"):
            continue
        each = _OTHER_NAMES.get(base, _NUMBERS.get(base, base) if overload.startswith("Scalar") else base)
        if hasattr(torch.ops.aten, each):
            packet = getattr(torch.ops.aten, f"_foreach_{base}")
            function = partial(_each, getattr(torch.ops.aten, each), _BY_KEYWORD.get(base))
            found[getattr(packet, overload or "default")] = function
    return found


def _root(base: Any, exponent: Any) -> Any:
    """What torch has operators for, which give NaN of minus infinity; any other power stays."""
    match exponent:
        case 0.5:
            return base.sqrt()
        case -0.5:
            return base.rsqrt()
        case _:
            return NotImplemented


def _safe_softmax(x: Any, dim: int, dtype: torch.dtype | None = None) -> Any:
    """Rows without any finite element give zeros. Of one loop over rows where those lie in memory one by one."""
    if x.numel() == 0:
        return torch.softmax(x, dim, dtype)
    dtype = dtype or x.dtype
    wide = x.to(torch.promote_types(dtype, torch.float32))
    largest = wide.amax(dim, keepdim=True)
    empty = largest == -torch.inf
    powers = (wide - largest.masked_fill(empty, 0)).exp()
    return (powers / powers.sum(dim, keepdim=True).masked_fill(empty, 1)).to(dtype)


def _count(x: Any, *dims: Any, **words: Any) -> Any:
    """Truths are summed as numbers, of the dtype that the sum has."""
    if x.dtype != torch.bool or words.get("dtype") is not None:
        return NotImplemented
    return x.to(torch.int64).sum(*dims, **words)


def _index(x: Any, indices: list[Any]) -> Any:
    """Indices along one dimension choose slices; those below zero count from its end."""
    given = [(dim, index) for dim, index in enumerate(indices) if index is not None]
    if len(given) != 1:
        return NotImplemented
    ((dim, index),) = given
    if index.device != x.device or index.dtype not in (torch.int32, torch.int64):
        return NotImplemented
    places = index.reshape(-1)
    chosen = x.index_select(dim, torch.where(places < 0, places + x.shape[dim], places))
    return chosen.reshape(*x.shape[:dim], *index.shape, *x.shape[dim + 1 :])


def _index_copy(x: Any, dim: int, index: Any, source: Any) -> Any:
    """As a scatter, for which vendors have a function that works in place."""
    if x.dim() == 0 or source.dim() != x.dim():
        return NotImplemented
    shape = [-1 if d == dim % x.dim() else 1 for d in range(x.dim())]
    return x.scatter(dim, index.view(shape).expand_as(source), source)


def _rms_norm(x: Any, shape: list[int], weight: Any, eps: float | None) -> Any:
    """No `eps` is the resolution of the dtype that it computes in."""
    if eps is not None:
        return NotImplemented
    known = torch.finfo(torch.promote_types(x.dtype, torch.float32)).eps
    return torch.ops.aten._fused_rms_norm.default(x, shape, weight, known)


def _product_and_sum(one: Any, other: Any, added: Any) -> Any:
    return one * other + added


def _each(function: Callable[..., Any], last: str | None, *args: Any, **kwargs: Any) -> list[Any]:
    """The results of `function` for each position of the lists; anything else is the same for all."""
    count = next(len(arg) for arg in args if isinstance(arg, list | tuple) and arg)

    def at(value: Any, index: int) -> Any:
        return value[index] if isinstance(value, list | tuple) else value

    results = []
    for index in range(count):
        named = {name: at(value, index) for name, value in kwargs.items() if value is not None}
        given = [at(arg, index) for arg in args]
        if last is not None and len(given) == 4:
            named[last] = given.pop()
        results.append(function(*given, **named))
    return results

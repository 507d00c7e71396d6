"""The dtypes that an operator's results have for given arguments, without computing it."""

from typing import Any

import torch

from op_tools.calls import OperatorCall
from op_tools.values import mapped, results_of, tensors_in

_known: dict[Any, tuple[torch.dtype | None, ...] | None] = {}


def result_dtypes(call: OperatorCall) -> tuple[torch.dtype | None, ...] | None:
    """One for each result, None for those that are no tensors; None where torch has no rule without memory."""
    shown = tuple(tensor.dtype for _, tensor in tensors_in(call.given))
    key = (call.overload.name, shown, call.kwargs.get("dtype"))
    if key not in _known:
        _known[key] = _asked(call)
    return _known[key]


def _asked(call: OperatorCall) -> tuple[torch.dtype | None, ...] | None:
    try:
        with torch.no_grad():
            found = call.with_arguments(mapped(call.args, _without_memory), mapped(call.kwargs, _without_memory))()
    except (RuntimeError, NotImplementedError, TypeError, ValueError):
        return None
    return tuple(value.dtype if isinstance(value, torch.Tensor) else None for value in results_of(found))


def _without_memory(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().to("meta")
    return torch.device("meta") if isinstance(value, torch.device) else value

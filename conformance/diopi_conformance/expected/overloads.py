"""ATen overloads as the plan binds them: whether one can say what a call asks for, and with which arguments."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from diopi_conformance.cases.plan import Argument, Param, Reference
from diopi_conformance.expected.reference_call import ReferenceCall
from diopi_conformance.references.registry import MEMORY_FORMATS


def applies(entry: Reference, call: ReferenceCall) -> bool:
    """Whether the overload can say what the call asks for."""
    if any(call.values.get(name) not in (None, []) for name in entry.absent if name in call.values):
        return False
    if any(call.values.get(name) != value for name, value in entry.constants.items()):
        return False
    if not all(_same(call, name, value) for name, value in entry.require.items()):
        return False
    return not any(_lacks(arg, arg.param, call) for arg in entry.args if arg.param is not None)


def _lacks(arg: Argument, name: str, call: ReferenceCall) -> bool:
    """Whether the case leaves out what this overload cannot do without."""
    param = call.function.param(name)
    given = call.values.get(name, param.default)
    return given is None and not param.enumerators and not arg.type.endswith("?")


def _same(call: ReferenceCall, name: str, value: Any) -> bool:
    found = call.values.get(name)
    enumerators = call.function.param(name).enumerators
    return bool(found == value or (enumerators and isinstance(value, int) and enumerators.index(found) == value))


def arguments(
    entry: Reference, call: ReferenceCall, own: Callable[[torch.Tensor], torch.Tensor] = torch.Tensor.clone
) -> dict[str, Any]:
    """What the overload is given, by name, outputs left out; `own` gives the tensors that it may write into."""
    return {arg.name: _argument(arg, call, own) for arg in entry.args if not arg.out}


def written_arguments(entry: Reference) -> list[str]:
    """The names of the overload's outputs among its arguments, in the order of its results."""
    return [arg.name for arg in entry.args if arg.out]


def _argument(arg: Argument, call: ReferenceCall, own: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if arg.param is None:
        return arg.value
    value = call.values.get(arg.param)
    param = call.function.param(arg.param)
    if param.enumerators:
        return _enumerator(param, value)
    if isinstance(value, torch.Tensor):
        return own(value)
    if isinstance(value, list):  # in-place forms write into what they are given
        return [own(v) if isinstance(v, torch.Tensor) else v for v in value]
    if arg.type.startswith("Tensor") and isinstance(value, bool | int | float):
        return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)
    if arg.type.startswith("Generator"):
        return None  # the numbers do not matter, only their distribution does
    if value is None:
        return param.default
    if arg.type.startswith(("int[", "SymInt[")) and isinstance(value, int):
        return [value]
    return value


def _enumerator(param: Param, value: Any) -> Any:
    if "floor" in param.enumerators:
        return None if value == "none" else value
    if "mean" in param.enumerators:
        return param.enumerators.index(value)
    return MEMORY_FORMATS[value]


@cache
def overload(name: str) -> Callable[..., Any]:
    """e.g. "add.Tensor", "relu"."""
    packet, _, which = name.partition(".")
    found: Callable[..., Any] = getattr(getattr(torch.ops.aten, packet), which or "default")
    return found

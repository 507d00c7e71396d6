"""What is called on a device for a case: the overload that PyTorch has for its function, or the gradient of one."""

from collections.abc import Callable, Iterator
from typing import Any

import torch

from diopi_conformance.cases.plan import Argument, Case, CasePlan, Function, Reference
from diopi_conformance.expected.overloads import applies, arguments, overload, written_arguments
from diopi_conformance.expected.reference_call import ReferenceCall
from diopi_conformance.prepare import live
from diopi_conformance.prepare.inputs import given_values
from diopi_conformance.values.inputs import UnfitCase, UnsoundCase

_TYPES = {
    **{"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64, "bool": torch.bool},
    **{"i8": torch.int8, "u8": torch.uint8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64},
    **{"c64": torch.complex64, "c128": torch.complex128},
}
_CONVOLUTIONS = {"convolution2d": 2, "convolution3d": 3}

Timed = Callable[[], object]


REFUSED = (UnfitCase, UnsoundCase, RuntimeError, TypeError, IndexError, KeyError, AttributeError)


def prepared(plan: CasePlan, function: Function, case: Case, device: str) -> Timed | None:
    """The call on a device, or None where PyTorch has none."""
    spoken = plan.functions[function.plain] if function.form == "backward" and not function.references else function
    if not spoken.references and spoken.op not in _CONVOLUTIONS:
        return None  # before anything is drawn
    values, forward = given_values(plan, function, case, live())
    typed = _typed(values, case.dtypes)
    found = forward_call(plan, function, case, device, typed)
    if found is None and function.form == "backward" and forward is not None:
        found = backward_call(plan, function, case, device, typed, _typed(forward, case.forward))
    return found


def forward_call(plan: CasePlan, function: Function, case: Case, device: str, values: dict[str, Any]) -> Timed | None:
    """The overload that PyTorch has for the function, with its arguments on `device`; None where it has none."""
    call = ReferenceCall(plan=plan, function=function, case=case, dtypes=case.dtypes, values=values)
    for entry in _entries(function, call):
        named = {name: _placed(value, device) for name, value in arguments(entry, call).items()}
        found = overload(entry.overload)
        return lambda: found(**named)
    return None


def backward_call(
    plan: CasePlan, function: Function, case: Case, device: str, values: Any, forward: Any
) -> Timed | None:
    """What autograd runs for the function's gradient, where PyTorch has no overload for it."""
    plain = plan.functions[function.plain]
    asked = [arg for arg in function.backward.grads.values() if isinstance(forward.get(arg), torch.Tensor)]
    leaves = {arg: forward[arg].to(device).requires_grad_() for arg in asked}
    placed = {name: _placed(value, device) for name, value in forward.items()}
    call = ReferenceCall(plan=plan, function=plain, case=case, dtypes=case.forward, values=placed)
    for entry in _entries(plain, call):
        given = {arg.name: leaves.get(arg.param or "") for arg in entry.args}
        named = {name: value if given[name] is None else given[name] for name, value in arguments(entry, call).items()}
        with torch.enable_grad():
            result = overload(entry.overload)(**named)
        results = result if isinstance(result, tuple) else (result,)
        grads = function.backward.grad_outputs
        outs = [results[entry.returns[out]] for out in grads.values()]
        grads_of = [_placed(values[param], device) for param in grads]
        wanted = list(leaves.values())
        return lambda: torch.autograd.grad(outs, wanted, grads_of, retain_graph=True, allow_unused=True)
    return None


def _entries(function: Function, call: ReferenceCall) -> Iterator[Reference]:
    """The overloads that say the call and give their results; of a convolution the one that users reach."""
    if function.op in _CONVOLUTIONS and function.form == "out":
        names = {"input": "Tensor", "weight": "Tensor", "bias": "Tensor?", "stride": "SymInt[]", "padding": "SymInt[]"}
        names |= {"dilation": "SymInt[]", "groups": "SymInt"}
        args = [Argument(name=n, param=n, type=t) for n, t in names.items()]
        args.append(Argument(name="transposed", value=False))
        args.append(Argument(name="output_padding", value=[0] * _CONVOLUTIONS[function.op]))
        yield Reference(
            overload="convolution",
            args=tuple(args),
            returns={"out": 0},
            writes={},
            absent=(),
            constants={},
            require={},
        )
    yield from (e for e in function.references if applies(e, call) and not written_arguments(e))


def _placed(value: Any, device: str) -> Any:
    if isinstance(value, list):
        return [_placed(entry, device) for entry in value]
    return value.to(device) if isinstance(value, torch.Tensor) else value


def _typed(values: Any, dtypes: dict[str, str]) -> dict[str, Any]:
    """The values as tensors of the types that the case names; they are drawn in float64."""

    def one(name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [one(name, entry) for entry in value]
        if hasattr(value, "dtype"):
            tensor = torch.as_tensor(value)
            return tensor.to(_TYPES[dtypes[name]]) if name in dtypes else tensor
        return value

    return {name: one(name, value) for name, value in values.items()}

"""What a function should give, computed by PyTorch on the CPU in float64 (integers and bool in their own type)."""

import os
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

# References are the CPU's: no backend that is installed beside torch is loaded here.
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # deprecations of single overloads are no news here

import numpy as np
import torch

from diopi_conformance.cases.plan import Param
from diopi_conformance.expected.reference_call import Call
from diopi_conformance.references import written_reference
from diopi_conformance.references.registry import MEMORY_FORMATS
from diopi_conformance.values.elements import Array
from diopi_conformance.values.inputs import UnsoundCase

Outputs = dict[str, Any]  # parameter: tensor, list of tensors, host value, or None where absent


def to_torch(value: Any) -> Any:
    """Arrays as tensors, the rest as it is."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(np.array(value))
    if isinstance(value, list):
        return [to_torch(v) for v in value]
    return value


def to_numpy(value: Any) -> Any:
    """Tensors as arrays, the rest as it is."""
    if isinstance(value, torch.Tensor):
        array: Array = value.detach().resolve_conj().resolve_neg().contiguous().numpy()
        return array
    if isinstance(value, list | tuple):
        return [to_numpy(v) for v in value]
    return value


def reference(call: Call) -> Outputs:
    """The expected outputs. Raises UnsoundCase where PyTorch refuses the call or nothing computes it."""
    try:
        return _computed(call)
    except UnsoundCase:
        raise
    except (
        AttributeError,
        IndexError,
        KeyError,
        NotImplementedError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:
        text = str(error).strip().split("\n")[0]
        raise UnsoundCase(f"the reference refuses the case: {text}") from error


def _computed(call: Call) -> Outputs:
    written = written_reference(call.function)
    if written is not None:
        return written(call)
    refusals: list[RuntimeError] = []
    for entry in call.function.references:
        if _applies(entry, call):
            try:
                return _aten(entry, call)
            except RuntimeError as refusal:  # ex) an overload for images, given vectors
                refusals.append(refusal)
    if refusals:
        raise refusals[0]
    if call.function.form == "backward":
        return _by_autograd(call)
    if call.function.plain:
        return _by_plain_form(call)
    raise UnsoundCase(f"nothing computes '{call.function.symbol}'; write a reference for it")


def _applies(entry: Mapping[str, Any], call: Call) -> bool:
    if any(call.values.get(name) not in (None, []) for name in entry["absent"] if name in call.values):
        return False
    if any(call.values.get(name) != value for name, value in entry["constants"].items()):
        return False
    if not all(_same(call, name, value) for name, value in entry["require"].items()):
        return False
    return not any(_lacks(arg, call) for arg in entry["args"] if "param" in arg)


def _lacks(arg: Mapping[str, Any], call: Call) -> bool:
    """Whether the case leaves out what this overload cannot do without."""
    param = call.function.param(arg["param"])
    given = call.values.get(arg["param"], param.default)
    return given is None and not param.enumerators and not arg["type"].endswith("?")


def _same(call: Call, name: str, value: Any) -> bool:
    found = call.values.get(name)
    enumerators = call.function.param(name).enumerators
    return bool(found == value or (enumerators and isinstance(value, int) and enumerators.index(found) == value))


def _aten(entry: Mapping[str, Any], call: Call) -> Outputs:
    positional: list[Any] = []
    named: dict[str, Any] = {}
    outs: list[str] = []
    for arg in entry["args"]:
        if arg.get("out"):
            outs.append(arg["name"])
            continue
        value = _argument(arg, call)
        if arg.get("keyword") or named:
            named[arg["name"]] = value
        else:
            positional.append((arg["name"], value))
    named = {**dict(positional), **named}
    for index, name in enumerate(outs):
        param = next((p for p, i in entry["returns"].items() if i == index), None)
        dtype = call.output_dtype(param) if param is not None and param in call.dtypes else torch.float64
        named[name] = torch.empty(0, dtype=dtype)
    result = overload(entry["overload"])(**named)
    results = list(result) if isinstance(result, tuple) else [result]
    found: Outputs = {param: results[index] for param, index in entry["returns"].items()}
    found.update({param: named[name] for param, name in entry["writes"].items()})
    return found


def _argument(arg: Mapping[str, Any], call: Call) -> Any:
    if "param" not in arg:
        return arg["value"]
    value = call.values.get(arg["param"])
    param = call.function.param(arg["param"])
    if param.enumerators:
        return _enumerator(param, value)
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, list):  # in-place forms write into what they are given
        return [v.clone() if isinstance(v, torch.Tensor) else v for v in value]
    if arg["type"].startswith("Tensor") and isinstance(value, bool | int | float):
        return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)
    if arg["type"].startswith("Generator"):
        return None  # the numbers do not matter, only their distribution does
    if value is None:
        return param.default
    if arg["type"].startswith(("int[", "SymInt[")) and isinstance(value, int):
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
    """ex) "add.Tensor", "relu"."""
    packet, _, which = name.partition(".")
    found: Callable[..., Any] = getattr(getattr(torch.ops.aten, packet), which or "default")
    return found


def _by_plain_form(call: Call) -> Outputs:
    """In-place and scalar forms by the op's out form, whose first output they write."""
    plain = call.plan.functions[call.function.plain]
    outs = [p.name for p in plain.params if p.role == "out"]
    inout = next((p.name for p in call.function.params if p.role == "inout"), None)
    dtypes = dict(call.dtypes)
    for name in outs:
        dtypes.setdefault(name, dtypes[inout] if inout is not None else "f32")
    found = reference(Call(plan=call.plan, function=plain, case=call.case, dtypes=dtypes, values=call.values))
    if inout is None:
        return found
    return {inout: found[outs[0]].to(call.output_dtype(inout))}


def _by_autograd(call: Call) -> Outputs:
    """Backward functions by differentiating the forward's reference at the values it was given."""
    plain = call.plan.functions[call.function.plain]
    sources = call.function.backward
    forward = call.forward
    if forward is None:
        raise UnsoundCase(f"'{call.function.symbol}' has no forward function to differentiate")
    leaves = {arg: _leaf(forward[arg]) for arg in sources["grads"].values()}
    values = {**forward, **{arg: leaf for arg, leaf in leaves.items() if leaf is not None}}
    with torch.enable_grad():
        outs = reference(Call(plan=call.plan, function=plain, case=call.case, dtypes=call.case.forward, values=values))
        pairs = [(outs[out], call.values[param]) for param, out in sources["grad_outputs"].items()]
        used = [(out, grad) for out, grad in pairs if out is not None and grad is not None and out.requires_grad]
        flat = [t for leaf in leaves.values() for t in (leaf if isinstance(leaf, list) else [leaf]) if t is not None]
        into, wanted = [out for out, _ in used], [grad.to(out.dtype) for out, grad in used]
        # where no output stems from a leaf, all gradients are zeros
        grads = iter(torch.autograd.grad(into, flat, wanted, allow_unused=True) if used else [None] * len(flat))
    return {param: _gradients(leaves[arg], grads) for param, arg in sources["grads"].items()}


def _leaf(value: Any) -> Any:
    if isinstance(value, list):
        return [_leaf(v) for v in value]
    return None if value is None else value.detach().clone().requires_grad_(True)


def _gradients(leaf: Any, grads: Any) -> Any:
    if isinstance(leaf, list):
        return [_gradients(entry, grads) for entry in leaf]
    if leaf is None:
        return None
    grad = next(grads)
    return torch.zeros_like(leaf) if grad is None else grad

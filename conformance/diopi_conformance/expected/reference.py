"""What a function should give, computed by PyTorch on the CPU in float64 (integers and bool in their own type)."""

from typing import Any

import numpy as np

from diopi_conformance.cases.plan import Reference
from diopi_conformance.expected.cpu_torch import torch  # before others import it
from diopi_conformance.expected.overloads import applies, arguments, overload, written_arguments
from diopi_conformance.expected.reference_call import ReferenceCall
from diopi_conformance.references import written_reference
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


def reference(call: ReferenceCall) -> Outputs:
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


def _computed(call: ReferenceCall) -> Outputs:
    written = written_reference(call.function)
    if written is not None:
        return written(call)
    refusals: list[RuntimeError] = []
    for entry in call.function.references:
        if applies(entry, call):
            try:
                return _aten(entry, call)
            except RuntimeError as refusal:  # e.g. an overload for images, given vectors
                refusals.append(refusal)
    if refusals:
        raise refusals[0]
    if call.function.form == "backward":
        return _by_autograd(call)
    if call.function.plain:
        return _by_plain_form(call)
    raise UnsoundCase(f"nothing computes '{call.function.symbol}'; write a reference for it")


def _aten(entry: Reference, call: ReferenceCall) -> Outputs:
    named = arguments(entry, call)
    outs = written_arguments(entry)
    for index, name in enumerate(outs):
        param = next((p for p, i in entry.returns.items() if i == index), None)
        dtype = call.output_dtype(param) if param is not None and param in call.dtypes else torch.float64
        named[name] = torch.empty(0, dtype=dtype)
    result = overload(entry.overload)(**named)
    results = list(result) if isinstance(result, tuple) else [result]
    found: Outputs = {param: results[index] for param, index in entry.returns.items()}
    found.update({param: named[name] for param, name in entry.writes.items()})
    return found


def _by_plain_form(call: ReferenceCall) -> Outputs:
    """In-place and scalar forms by the op's out form, whose first output they write."""
    plain = call.plan.functions[call.function.plain]
    outs = [p.name for p in plain.params if p.role == "out"]
    inout = next((p.name for p in call.function.params if p.role == "inout"), None)
    dtypes = dict(call.dtypes)
    for name in outs:
        dtypes.setdefault(name, dtypes[inout] if inout is not None else "f32")
    found = reference(ReferenceCall(plan=call.plan, function=plain, case=call.case, dtypes=dtypes, values=call.values))
    if inout is None:
        return found
    return {inout: found[outs[0]].to(call.output_dtype(inout))}


def _by_autograd(call: ReferenceCall) -> Outputs:
    """Backward functions by differentiating the forward's reference at the values it was given."""
    plain = call.plan.functions[call.function.plain]
    sources = call.function.backward
    forward = call.forward
    if forward is None:
        raise UnsoundCase(f"'{call.function.symbol}' has no forward function to differentiate")
    leaves = {arg: _leaf(forward[arg]) for arg in sources.grads.values()}
    values = {**forward, **{arg: leaf for arg, leaf in leaves.items() if leaf is not None}}
    with torch.enable_grad():
        outs = reference(
            ReferenceCall(plan=call.plan, function=plain, case=call.case, dtypes=call.case.forward, values=values)
        )
        pairs = [(outs[out], call.values[param]) for param, out in sources.grad_outputs.items()]
        used = [(out, grad) for out, grad in pairs if out is not None and grad is not None and out.requires_grad]
        flat = [t for leaf in leaves.values() for t in (leaf if isinstance(leaf, list) else [leaf]) if t is not None]
        into, wanted = [out for out, _ in used], [grad.to(out.dtype) for out, grad in used]
        # where no output stems from a leaf, all gradients are zeros
        grads = iter(torch.autograd.grad(into, flat, wanted, allow_unused=True) if used else [None] * len(flat))
    return {param: _gradients(leaves[arg], grads) for param, arg in sources.grads.items()}


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

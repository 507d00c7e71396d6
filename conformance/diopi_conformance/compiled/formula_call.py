"""A case as the formula that its reference is: the same lines of torch, on the device and in the case's own types.

A backward function without an operator is the gradient of its forward's formula.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from diopi_conformance.cases.plan import CasePlan
from diopi_conformance.compiled.device_call import DeviceCall, on_device, places, storages_of, values_of
from diopi_conformance.expected.reference import reference
from diopi_conformance.expected.reference_call import ReferenceCall
from diopi_conformance.prepare import Prepared
from diopi_conformance.references import written_reference
from diopi_conformance.values.elements import encode


@dataclass(slots=True, kw_only=True)
class FormulaCall(DeviceCall):
    """The reference, given tensors of the device."""

    call: ReferenceCall
    given: Mapping[str, Any] = field(default_factory=dict)  # of the formula, by parameter

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        return {place: item for place, item in places(self.given) if isinstance(item, torch.Tensor)}

    def text(self, read: Mapping[str, str], bind: Callable[[Any], str]) -> str:
        listed = {name: len(value) for name, value in self.given.items() if isinstance(value, list | tuple)}
        tensors = ", ".join(f"{place!r}: {read[place]}" for place in self.tensors)

        def formula(tensors: dict[str, torch.Tensor]) -> dict[str, Any]:
            values = dict(self.given)
            for name, value in values.items():
                if name in tensors:
                    values[name] = tensors[name]
                elif name in listed:
                    values[name] = [tensors.get(f"{name}.{index}", item) for index, item in enumerate(value)]
            return _computed(replace(self.call, values=values))

        return f"{bind(formula)}({{{tensors}}})"

    def run(self) -> Any:
        return _computed(replace(self.call, values=dict(self.given)))

    def returned(self, result: Any) -> dict[str, Any]:
        return dict(result)


@dataclass(slots=True, kw_only=True)
class GradientCall(FormulaCall):
    """The forward's formula; what is asked for are gradients of its results."""

    own: Mapping[str, Any] = field(default_factory=dict)  # what the backward function itself reads

    def pulled(self, result: Mapping[str, Any]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Results that depend on a leaf, and the gradients that come in for them."""
        sources = self.prepared.function.backward
        pairs = [(result[out], self.own[param]) for param, out in sources.grad_outputs.items()]
        used = [(out, grad) for out, grad in pairs if out is not None and grad is not None and out.requires_grad]
        return [out for out, _ in used], [grad.to(out.dtype) for out, grad in used]

    def leaves(self) -> list[torch.Tensor]:
        """What the gradients are of, in the order of the parameters that they are written to."""
        wanted = {arg: self.given[arg] for arg in self.prepared.function.backward.grads.values()}
        return [item for _, item in places(wanted) if item is not None]

    def returned(self, result: Any) -> dict[str, Any]:
        """From one gradient for each leaf, None where the results do not depend on it."""
        gradients = iter(result)
        found: dict[str, Any] = {}
        for param, arg in self.prepared.function.backward.grads.items():
            leaf = self.given[arg]
            if isinstance(leaf, list):
                found[param] = [None if item is None else _gradient(item, next(gradients)) for item in leaf]
            else:
                found[param] = None if leaf is None else _gradient(leaf, next(gradients))
        return found


def formula_call(plan: CasePlan, prepared: Prepared, device: str) -> FormulaCall | None:
    """The case's formula with memory of its own; None where the suite has none."""
    storages = storages_of(prepared, device)
    function, case = prepared.function, prepared.case
    values = values_of(prepared, storages)
    call = ReferenceCall(plan=plan, function=function, case=case, dtypes=case.dtypes, values=values)
    if written_reference(function) is not None:
        return FormulaCall(plan=plan, prepared=prepared, storages=storages, call=call, given=values)
    if function.form != "backward" or prepared.forward is None:
        return None
    plain = plan.functions[function.plain]
    given = {name: _forward(name, value, case.forward, device) for name, value in prepared.forward.items()}
    for arg in function.backward.grads.values():
        for _, leaf in places({arg: given[arg]}):
            if leaf is not None:
                leaf.requires_grad_(True)
    forward = ReferenceCall(plan=plan, function=plain, case=case, dtypes=case.forward, values=given)
    return GradientCall(plan=plan, prepared=prepared, storages=storages, call=forward, given=given, own=values)


def _computed(call: ReferenceCall) -> dict[str, Any]:
    written = written_reference(call.function)
    return dict(written(call)) if written is not None else dict(reference(call))


def _forward(name: str, value: Any, dtypes: Mapping[str, str], device: str) -> Any:
    if isinstance(value, list):
        return [_forward(name, item, dtypes, device) for item in value]
    if not isinstance(value, np.ndarray):
        return value
    words = encode(value, dtypes[name])
    return on_device(np.ascontiguousarray(words).reshape(-1), dtypes[name], device).reshape(value.shape)


def _gradient(leaf: torch.Tensor, found: torch.Tensor | None) -> torch.Tensor:
    return torch.zeros_like(leaf) if found is None else found

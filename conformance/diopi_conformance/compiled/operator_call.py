"""A case as a call of an operator of ATen, as the plan binds it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from diopi_conformance.cases.plan import CasePlan, Reference
from diopi_conformance.compiled.device_call import DeviceCall, places, spelled, storages_of, values_of, view_of
from diopi_conformance.expected.overloads import applies, arguments, overload, written_arguments
from diopi_conformance.expected.reference_call import ReferenceCall
from diopi_conformance.prepare import Prepared


@dataclass(slots=True, kw_only=True)
class OperatorCall(DeviceCall):
    """e.g. torch.ops.aten.add.Tensor(self=..., other=..., alpha=2)"""

    entry: Reference  # of the plan: how an overload stands for the function
    named: dict[str, Any] = field(default_factory=dict)

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        return {place: item for place, item in places(self.named) if isinstance(item, torch.Tensor)}

    def text(self, read: Mapping[str, str], bind: Callable[[Any], str]) -> str:
        # By position where the schema lets it: an argument may be called as a word of Python is.
        formals = overload(self.entry.overload)._schema.arguments  # type: ignore[attr-defined]
        given: list[str] = []
        skipped = False
        for formal in formals:
            if formal.name not in self.named:
                skipped = True
                continue
            value = spelled(formal.name, self.named[formal.name], read)
            given.append(f"{formal.name}={value}" if skipped or formal.kwarg_only else value)
        packet, _, which = self.entry.overload.partition(".")
        name = f"torch.ops.aten.{packet}"
        found = f"{name}.{which or 'default'}" if which.isidentifier() and which != "from" else None
        return f"{found or bind(overload(self.entry.overload))}({', '.join(given)})"

    def run(self) -> Any:
        return overload(self.entry.overload)(**self.named)

    def returned(self, result: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        several = isinstance(result, list | tuple) and not _gives_list(self.entry.overload)
        for param, index in self.entry.returns.items():
            found[param] = result[index] if several else result
        for param, name in self.entry.writes.items():
            found[param] = self.named[name]
        return found


def operator_calls(plan: CasePlan, prepared: Prepared, device: str) -> Iterator[Callable[[], OperatorCall]]:
    """A maker for each overload that says the case; each call that it makes has memory of its own."""
    storages = storages_of(prepared, device)
    for entry in prepared.function.references:
        if applies(entry, _call(plan, prepared, storages)):
            yield lambda entry=entry: _operator_call(plan, prepared, entry, device)  # type: ignore[misc]


def _operator_call(plan: CasePlan, prepared: Prepared, entry: Reference, device: str) -> OperatorCall:
    storages = storages_of(prepared, device)
    made = OperatorCall(plan=plan, prepared=prepared, entry=entry, storages=storages)
    made.named = arguments(entry, _call(plan, prepared, storages), own=lambda tensor: tensor)
    outputs = {index: param for param, index in entry.returns.items()}
    for index, name in enumerate(written_arguments(entry)):
        param = outputs.get(index)
        place = next((i for i, buffer in enumerate(prepared.buffers) if buffer.label == param), None)
        absent = torch.empty(0, device=device)
        made.named[name] = absent if place is None else view_of(prepared.buffers[place], storages[place])
    return made


def _call(plan: CasePlan, prepared: Prepared, storages: list[torch.Tensor]) -> ReferenceCall:
    values = values_of(prepared, storages)
    return ReferenceCall(
        plan=plan, function=prepared.function, case=prepared.case, dtypes=prepared.case.dtypes, values=values
    )


def _gives_list(name: str) -> bool:
    returns = overload(name)._schema.returns  # type: ignore[attr-defined]
    return len(returns) == 1 and str(returns[0].type).startswith("List[")

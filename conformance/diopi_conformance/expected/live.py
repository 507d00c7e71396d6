"""Expected results as PyTorch on the CPU computes them, when they are asked for."""

from dataclasses import replace

import numpy as np

from diopi_conformance.cases.plan import Case, CasePlan
from diopi_conformance.expected.expectations import Expected
from diopi_conformance.expected.reference import reference, to_numpy, to_torch
from diopi_conformance.expected.reference_call import ReferenceCall
from diopi_conformance.expected.sensitivity import Inputs, sensitivity
from diopi_conformance.judgement.tolerance import Terms, coarse
from diopi_conformance.references.registry import SCRATCH
from diopi_conformance.values.draw import source
from diopi_conformance.values.elements import Array
from diopi_conformance.values.inputs import UnsoundCase, Values

_FORWARD = "forward of "  # before the names of what the forward function was given


class Live:
    """Computes every result anew; see Expectations."""

    def forward(self, plan: CasePlan, case: Case, values: Values) -> Values:
        plain = plan.functions[plan.functions[case.function].plain]
        tensors = {name: to_torch(value) for name, value in values.items()}
        found = reference(ReferenceCall(plan=plan, function=plain, case=case, dtypes=case.forward, values=tensors))
        return {name: to_numpy(value) for name, value in found.items()}

    def outputs(self, plan: CasePlan, case: Case, values: Values, forward: Values | None) -> Expected:
        function = plan.functions[case.function]
        found = reference(_call(plan, case, values, forward))
        made = [p.name for p in function.params if p.passing == "tensor*"]
        return Expected(
            values={name: to_numpy(value) for name, value in found.items()},
            strides={n: tuple(found[n].stride()) for n in made if hasattr(found.get(n), "stride")},
        )

    def terms(self, plan: CasePlan, case: Case, values: Values, forward: Values | None) -> dict[str, Terms]:
        call = _call(plan, case, values, forward)
        inputs = {**call.values, **{f"{_FORWARD}{name}": value for name, value in (call.forward or {}).items()}}
        found = sensitivity(lambda changed: _answer(call, changed), inputs, source(case.id, "sensitivity", case.seed))
        return {label: replace(terms, magnitude=coarse(terms.magnitude)) for label, terms in found.items()}


def _answer(call: ReferenceCall, inputs: Inputs) -> dict[str, Array] | None:
    """The outputs of `call` with other values, elements of lists as "tensors[2]"."""
    values = {name: value for name, value in inputs.items() if not name.startswith(_FORWARD)}
    forward = {name.removeprefix(_FORWARD): value for name, value in inputs.items() if name.startswith(_FORWARD)}
    found: dict[str, Array] = {}
    try:
        results = reference(replace(call, values=values, forward=None if call.forward is None else forward))
    except UnsoundCase:
        return None
    for name, value in results.items():
        listed = isinstance(value, list | tuple)
        for index, entry in enumerate(value if listed else [value]):
            if entry is not None and entry is not SCRATCH:
                found[f"{name}[{index}]" if listed else name] = np.asarray(to_numpy(entry))
    return found


def _call(plan: CasePlan, case: Case, values: Values, forward: Values | None) -> ReferenceCall:
    return ReferenceCall(
        plan=plan,
        function=plan.functions[case.function],
        case=case,
        dtypes=case.dtypes,
        values={name: to_torch(value) for name, value in values.items()},
        forward=None if forward is None else {name: to_torch(value) for name, value in forward.items()},
    )

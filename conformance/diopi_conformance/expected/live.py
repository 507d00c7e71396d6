"""Expected results as PyTorch on the CPU computes them, when they are asked for."""

from dataclasses import replace

from diopi_conformance.cases.plan import Case, Plan
from diopi_conformance.expected.expectations import Expected
from diopi_conformance.expected.reference import reference, to_numpy, to_torch
from diopi_conformance.expected.reference_call import Call
from diopi_conformance.expected.sensitivity import sensitivity
from diopi_conformance.judgement.tolerance import Terms, coarse
from diopi_conformance.values.inputs import Values


class Live:
    """Computes every result anew; see Expectations."""

    def forward(self, plan: Plan, case: Case, values: Values) -> Values:
        plain = plan.functions[plan.functions[case.function].plain]
        tensors = {name: to_torch(value) for name, value in values.items()}
        found = reference(Call(plan=plan, function=plain, case=case, dtypes=case.forward, values=tensors))
        return {name: to_numpy(value) for name, value in found.items()}

    def outputs(self, plan: Plan, case: Case, values: Values, forward: Values | None) -> Expected:
        function = plan.functions[case.function]
        found = reference(_call(plan, case, values, forward))
        made = [p.name for p in function.params if p.passing == "tensor*"]
        return Expected(
            values={name: to_numpy(value) for name, value in found.items()},
            strides={n: tuple(found[n].stride()) for n in made if hasattr(found.get(n), "stride")},
        )

    def terms(self, plan: Plan, case: Case, values: Values, forward: Values | None) -> dict[str, Terms]:
        found = sensitivity(_call(plan, case, values, forward))
        return {label: replace(terms, magnitude=coarse(terms.magnitude)) for label, terms in found.items()}


def _call(plan: Plan, case: Case, values: Values, forward: Values | None) -> Call:
    return Call(
        plan=plan,
        function=plan.functions[case.function],
        case=case,
        dtypes=case.dtypes,
        values={name: to_torch(value) for name, value in values.items()},
        forward=None if forward is None else {name: to_torch(value) for name, value in forward.items()},
    )

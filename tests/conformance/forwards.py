"""What is differentiated: the forwards of backward functions, as the schemas tell them and as `RELATIONS` does."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from diopi_conformance.cases.plan import Case, CasePlan
from diopi_conformance.expected.expectations import SCRATCH, Expected
from diopi_conformance.expected.live import Live
from diopi_conformance.expected.reference import reference, to_torch
from diopi_conformance.expected.reference_call import ReferenceCall
from diopi_conformance.prepare import prepare
from diopi_conformance.values.inputs import Values
from tests.conformance.finite_differences import Compute

FLOATS = ("f16", "bf16", "f32", "f64")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gradient:
    """One gradient of one case, and the function that it should be the gradient of."""

    function: str  # the backward function's symbol
    label: str  # e.g. "linear_backward/f64/0: grad_weight"
    value: torch.Tensor
    at: torch.Tensor
    compute: Compute
    symmetric: bool = False  # whether the argument is, and moves so
    columns: int = 0  # first ones of the last dimension that hold indices


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A backward function that the schemas list as an operator of its own, or several that follow each other.

    What they read is taken by name from the values of the forward, its outputs, and results before.
    """

    forward: tuple[str, ...]  # functions that follow each other; the cases are those of the last
    backward: tuple[str, ...]
    grads: Mapping[str, str]  # result: argument of the forward
    grad_outputs: Mapping[str, str] = field(default_factory=dict)  # parameter: output; without any they are ones
    keeps: Mapping[str, str] = field(default_factory=dict)  # what has another name in the forward
    made: Mapping[str, Callable[[Values], Any]] = field(default_factory=dict)  # what the backward alone reads
    through: Mapping[str, tuple[Callable[..., Any], Callable[..., Any]]] = field(default_factory=dict)
    columns: int = 0

    # `through`: the gradient of an argument is by what it is a function of: (inverse of that function, the function)


class _Witness(Live):
    """Notes what a case's function and its forward read, and the results."""

    def outputs(self, plan: CasePlan, case: Case, values: Values, forward: Values | None) -> Expected:
        self.values = {name: to_torch(value) for name, value in values.items()}
        self.forward_values = {name: to_torch(value) for name, value in (forward or {}).items()}
        found = super().outputs(plan, case, values, forward)
        self.found = {name: to_torch(value) for name, value in found.values.items() if value is not SCRATCH}
        return found


def usual_cases(plan: CasePlan, function: str) -> list[Case]:
    """One case of each row, with float64 for whatever float type it has; rows that draw borders have no slope there."""
    rows: dict[str, Case] = {}
    for case in plan.cases:
        usual = case.view == "contiguous" and not (case.layout or case.fill or case.change or case.data)
        if case.function == function and usual:
            rows.setdefault(repr(case.values), replace(case, dtypes=_wide(case.dtypes), forward=_wide(case.forward)))
    return list(rows.values())


def _wide(dtypes: Mapping[str, str]) -> dict[str, str]:
    return {name: "f64" if dtype in FLOATS else dtype for name, dtype in dtypes.items()}


def of_schema(plan: CasePlan, case: Case) -> Iterator[Gradient]:
    """The gradients that a case of form backward asks for."""
    function = plan.functions[case.function]
    plain, sources = plan.functions[function.plain], function.backward
    witness = _Witness()
    prepare(plan, case, witness)
    grads = {out: witness.values[param] for param, out in sources.grad_outputs.items()}

    def outputs(values: Values) -> Values:
        return reference(ReferenceCall(plan=plan, function=plain, case=case, dtypes=case.forward, values=values))

    for result, arg in sources.grads.items():
        value, at = witness.found.get(result), witness.forward_values[arg]
        if isinstance(value, torch.Tensor) and value.numel():
            yield Gradient(
                function=function.symbol,
                label=f"{case.id}: {result}",
                value=value,
                at=at,
                compute=_contracted(outputs, witness.forward_values, arg, grads),
                symmetric=plain.data.get(arg) == "positive_definite()",
            )


def of_relation(plan: CasePlan, relation: Relation, case: Case) -> Iterator[Gradient]:
    """The gradients of a case of the relation's last forward function."""
    witness = _Witness()
    prepare(plan, case, witness)
    given = dict(witness.values)
    for arg, (inverse, function) in relation.through.items():
        given[arg] = function(inverse(given[arg]))

    def outputs(values: Values) -> Values:
        return _chained(plan, relation.forward, case, values)

    found = {**given, **outputs(given)}
    seed = torch.Generator().manual_seed(1)
    read = {**found, **{name: found[source] for name, source in relation.keeps.items()}}
    read |= {name: make(found) for name, make in relation.made.items()}
    drawn = {
        param: torch.randn(found[out].shape, dtype=torch.float64, generator=seed)
        for param, out in relation.grad_outputs.items()
    }
    results = _chained(plan, relation.backward, case, {**read, **drawn})
    grads = {out: drawn[param] for param, out in relation.grad_outputs.items()}
    for result, arg in relation.grads.items():
        inverse, function = relation.through.get(arg, (_same, _same))
        if given[arg] is not None and results[result].numel():
            yield Gradient(
                function=relation.backward[-1],
                label=f"{case.id}: {result} of {relation.backward[-1]}",
                value=results[result],
                at=inverse(given[arg]),
                compute=_contracted(outputs, given, arg, grads or {"output": torch.ones(())}, function),
                columns=relation.columns,
            )


def _same(value: torch.Tensor) -> torch.Tensor:
    return value


def _chained(plan: CasePlan, functions: tuple[str, ...], case: Case, values: Values) -> Values:
    """All results of functions that read what was there before; entries of lists as "outlist[0]", too."""
    known, results = dict(values), {}
    for symbol in functions:
        function = plan.functions[symbol]
        dtypes = _wide(next(c for c in plan.cases if c.function == symbol).dtypes)
        read = {p.name: known[p.name] for p in function.params if p.name in known}
        found = reference(ReferenceCall(plan=plan, function=function, case=case, dtypes=dtypes, values=read))
        for name, value in found.items():
            if value is not SCRATCH:
                entries = value if isinstance(value, list) else []
                results |= {name: value, **{f"{name}[{i}]": entry for i, entry in enumerate(entries)}}
        known |= results
    return results


def _contracted(
    outputs: Callable[[Values], Values],
    values: Values,
    arg: str,
    grads: Mapping[str, torch.Tensor | None],
    function: Callable[[torch.Tensor], torch.Tensor] = _same,
) -> Compute:
    """The outputs' elements times their gradients, summed, as a function of one argument."""

    def compute(at: torch.Tensor) -> tuple[float, float]:
        found = outputs({**values, arg: function(at)})
        terms = [found[out] * grad for out, grad in grads.items() if grad is not None and found[out] is not None]
        return sum(t.sum().item() for t in terms), sum(t.abs().sum().item() for t in terms)

    return compute

"""What the function of a case reads, and what its forward read where it is a backward function."""

from dataclasses import replace
from typing import Any

import numpy as np

from diopi_conformance.cases.plan import Case, CasePlan, Function, Param
from diopi_conformance.expected.expectations import SCRATCH, Expectations
from diopi_conformance.values.draw import parse_recipe
from diopi_conformance.values.elements import rounded
from diopi_conformance.values.inputs import UnsoundCase, Values, as_computed, draw_inputs, drawn, plain_value
from diopi_conformance.values.related import related_inputs


def given_values(plan: CasePlan, function: Function, case: Case, source: Expectations) -> tuple[Values, Values | None]:
    """What the function reads; for a backward function also what its forward read."""
    if function.form != "backward":
        computed = {p.name: p.computed(case.dtypes[p.name]) for p in function.params if p.name in case.dtypes}
        drawn_values = draw_inputs(function, case, case.dtypes, computed)
        return _related(function, case.dtypes, computed, drawn_values), None
    if not function.plain:
        raise UnsoundCase(f"'{function.symbol}' has no forward function")
    plain = plan.functions[function.plain]
    computed = _forward_computed(function, plain, case)
    forward = _related(plain, case.forward, computed, draw_inputs(plain, case, case.forward, computed))
    outs = source.forward(plan, case, forward)
    made = {n: _as_stored(v, case.forward[n]) for n, v in outs.items() if n in case.forward and v is not SCRATCH}
    values: Values = {}
    for param in function.params:
        if param.role in ("in", "inout") and param.passing != "count":
            value = _backward_value(function, param, case, forward, made)
            kept = function.backward.keeps.get(param.name) in forward  # computed already, and maybe shared
            values[param.name] = value if kept else as_vendor_computes(function, case, param.name, value)
    return values, forward


def _related(function: Function, dtypes: dict[str, str], computed: dict[str, str], values: Values) -> Values:
    """The inputs, those that must fit others made to."""
    fit = related_inputs(function)
    made = {} if fit is None else fit(values)
    stored = {name: _as_stored(np.asarray(value), dtypes[name]) for name, value in made.items()}
    return values | {name: as_computed(name, value, dtypes[name], computed[name]) for name, value in stored.items()}


def _forward_computed(function: Function, plain: Function, case: Case) -> dict[str, str]:
    """In which dtypes the forward's tensors reach the code: the backward's where it keeps them, else its own."""
    keepers = {source: function.param(name) for name, source in function.backward.keeps.items() if source}
    params = (p for p in plain.params if p.name in case.forward)
    return {p.name: keepers.get(p.name, p).computed(case.forward[p.name]) for p in params}


def as_vendor_computes(function: Function, case: Case, name: str, value: Any) -> Any:
    """What is left of a tensor of the call that passes through the dtype that the vendor computes in."""
    dtype = case.dtypes.get(name)
    return value if dtype is None else as_computed(name, value, dtype, function.param(name).computed(dtype))


def _as_stored(value: Any, dtype: str) -> Any:
    if isinstance(value, list):
        return [_as_stored(v, dtype) for v in value]
    return value if value is None else rounded(value, dtype)


def _backward_value(function: Function, param: Param, case: Case, forward: Values, made: Values) -> Any:
    sources = function.backward
    if param.name in sources.grad_outputs:
        out = made[sources.grad_outputs[param.name]]
        usual = replace(case, fill="")  # large gradients would enlarge what the forward's outputs lost in rounding
        if isinstance(out, list):
            return [
                drawn(usual, f"{param.name}[{i}]", o.shape, case.dtypes[param.name], None, False)
                for i, o in enumerate(out)
            ]
        text = function.recipe(param, case)
        recipe = parse_recipe(text, case.values, {}) if text else None
        return drawn(usual, param.name, out.shape, case.dtypes[param.name], recipe, False)
    if param.name in sources.keeps:
        source = sources.keeps[param.name]
        if source in forward:
            return forward[source]
        if source in made:
            return made[source]
        if source in case.forward and param.optional:  # working memory, which the backward function makes for itself
            return None
        if source is None and param.name in case.values:
            return case.values[param.name]
        if param.name.removesuffix("_sizes") in forward:  # "input_sizes" is the shape of "input"
            sized = forward[param.name.removesuffix("_sizes")]
            return None if sized is None else list(sized.shape)
        if source is None and not param.is_tensor:
            return _own_value(param, forward)
    if not param.is_tensor:
        return plain_value(param, case)
    if param.optional:
        return None
    raise UnsoundCase(f"nothing gives '{param.name}' of '{function.symbol}'")


def _own_value(param: Param, forward: Values) -> Any:
    """A value that only the backward function has: the sizes of an argument by its name, a flag that is off."""
    if param.name.endswith("_sizes"):
        sized = forward.get(param.name.removesuffix("_sizes"))
        return None if sized is None else list(sized.shape)
    if param.passing == "bool":
        return False
    raise UnsoundCase(f"nothing gives '{param.name}'")

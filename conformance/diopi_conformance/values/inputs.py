"""The values that a case gives to its function: tensors drawn from the case's name, numbers from its row."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from diopi_conformance.cases.plan import Case, Function, Param
from diopi_conformance.values.draw import Recipe, draw, parse_recipe, source
from diopi_conformance.values.elements import Array, holds, is_float, rounded
from diopi_conformance.values.fills import filled
from diopi_conformance.values.views import Sizes, own_sizes, shared
from diopigen.vocabulary.draws import COLUMNS, DRAW

Values = dict[str, Any]  # parameter: array, list of arrays, number, list of numbers, text, or None where absent


class UnsoundCase(Exception):
    """A case that cannot be run because its row is wrong; the text says why."""


class UnfitCase(Exception):
    """A case whose values the vendor has no dtype for; the text says which."""


def draw_inputs(
    function: Function, case: Case, dtypes: Mapping[str, str], computed: Mapping[str, str], origin: str = ""
) -> Values:
    """All that the function reads, outputs left out.

    `dtypes` are those of the function's tensors, `computed` those in which they reach the vendor's code, which drawn
    values pass through. `origin` keeps the random numbers of several functions that serve one case apart.
    Raises UnsoundCase and UnfitCase.
    """
    values: Values = {}
    for param in function.params:
        if param.role in ("in", "inout") and not param.is_tensor and param.passing != "count":
            values[param.name] = plain_value(param, case)
    sizes = _sizes(function, case)
    for param in function.params:
        if param.role in ("in", "inout") and param.is_tensor:
            value = _tensor_value(function, param, case, dtypes, values, sizes, origin)
            values[param.name] = as_computed(param.name, value, dtypes[param.name], computed[param.name])
    if case.view == "aliased":
        _alias(function, case, dtypes, computed, values)
    return values


def as_computed(name: str, value: Any, dtype: str, computed: str) -> Any:
    """What is left of a tensor of `dtype`, or a list of them, that passes through `computed`. Raises UnfitCase."""
    if isinstance(value, list):
        return [as_computed(f"{name}[{i}]", entry, dtype, computed) for i, entry in enumerate(value)]
    if dtype == computed or not isinstance(value, np.ndarray) or (is_float(dtype) and value.dtype.kind == "i"):
        return value  # whole numbers beside floats in one list keep the type of their own
    stored = rounded(value, dtype)
    if not holds(computed, stored):
        raise UnfitCase(f"'{name}' holds values that {computed} cannot")
    return rounded(rounded(stored, computed), dtype)


def _alias(
    function: Function, case: Case, dtypes: Mapping[str, str], computed: Mapping[str, str], values: Values
) -> None:
    """Makes inputs of one shape and type the same array, where they are drawn alike and the vendor casts them alike."""
    first: dict[tuple[Sizes, str, str], Array] = {}
    for param in function.params:
        value = values.get(param.name)
        if isinstance(value, np.ndarray) and not function.recipe(param, case):
            key = (value.shape, dtypes[param.name], computed[param.name])
            values[param.name] = first.setdefault(key, value)


def plain_value(param: Param, case: Case) -> Any:
    """What a parameter that is not a tensor gets; a single number stands for all of a list."""
    value = case.values.get(param.arg, case.values.get(param.name, param.default))
    if param.passing == "generator":
        return int(source(case.id, param.name, case.seed).integers(1, 2**31))
    if param.passing == "generator*":  # the row says how many
        return source(case.id, param.name, case.seed).integers(1, 2**31, size=value or 0).tolist()
    if param.enumerators:
        return value if value is not None else param.enumerators[0]
    if param.passing in ("size", "size*") and isinstance(value, int):
        return [value] * (param.length or 1)
    if value is None and param.passing == "bool":
        return False
    if value is None and not param.optional and param.passing in ("double", "float", "int32", "int64", "size"):
        raise UnsoundCase(f"the case gives no '{param.name}'")
    if param.passing == "float" and value is not None:
        return float(np.float32(value))
    if param.passing in ("double", "double*") or (param.passing == "scalar" and isinstance(value, str)):
        return None if value is None else float(value)
    return value


def _sizes(function: Function, case: Case) -> dict[str, Sizes]:
    """The shapes that the row names, by argument; of a list the first."""
    found: dict[str, Sizes] = {}
    for name, value in case.values.items():
        if isinstance(value, list) and all(isinstance(n, int) for n in value):
            found[name] = tuple(value)
        elif isinstance(value, list) and value and isinstance(value[0], list):
            found[name] = tuple(value[0])
    plain = {p.name for p in function.params if not p.is_tensor}
    return {name: sizes for name, sizes in found.items() if name not in plain}


def _tensor_value(
    function: Function,
    param: Param,
    case: Case,
    dtypes: Mapping[str, str],
    values: Values,
    sizes: Mapping[str, Sizes],
    origin: str,
) -> Any:
    given = case.values.get(param.arg, case.values.get(param.name))
    if given is None:
        if param.optional or param.passing == "tensors":
            return None if param.passing == "tensor" else []
        raise UnsoundCase(f"the case gives no '{param.name}'")
    dtype = dtypes[param.name]
    text = function.recipe(param, case)
    try:
        recipe = parse_recipe(text, {**case.values, **values}, sizes) if text else None
        if param.passing != "tensors":
            return drawn(case, param.name, tuple(given), dtype, recipe, param.role == "inout", origin)
        return [
            None if s is None else drawn(case, f"{param.name}[{i}]", tuple(s), dtype, recipe, False, origin)
            for i, s in enumerate(given)
        ]
    except (ValueError, TypeError, IndexError) as error:
        raise UnsoundCase(f"'{param.name}' cannot be drawn: {error}") from None


def drawn(
    case: Case, name: str, sizes: Sizes, dtype: str, recipe: Recipe | None, written: bool, origin: str = ""
) -> Array:
    """One tensor's values as its type holds them; where the view shares elements, their values repeat."""
    rng = source(case.id, origin + name, case.seed)
    view = "contiguous" if written or _whole(recipe, case, sizes) else case.view
    values = draw(recipe, own_sizes(view, sizes, case.layout), dtype, rng)
    if recipe is None:
        values = filled(case.fill, values, dtype, rng)
    return shared(view, rounded(values, dtype), sizes, case.layout)


def _whole(recipe: Recipe | None, case: Case, sizes: Sizes) -> bool:
    """Whether what the recipe draws must not repeat itself as the view would; columns may, line by line."""
    if recipe is not None and recipe.function == COLUMNS.name:
        return case.view != "expanded" or own_sizes("expanded", sizes, case.layout)[-1:] != sizes[-1:]
    return recipe is not None and not DRAW[recipe.function].single

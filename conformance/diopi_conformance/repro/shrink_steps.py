"""Cases that are a little simpler than a given one: the usual axes, a plainer element type, smaller shapes.

Not each of them can be run: what the reference refuses, or what the function does not take, is up to whoever tries it.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from diopi_conformance.cases.plan import Case, CasePlan

_PLAIN = ("f32", "f64", "i64", "i32", "bool", "f16", "bf16")  # the plainest first

Values = dict[str, Any]
Shape = list[int]


def simpler(plan: CasePlan, case: Case) -> Iterator[Case]:
    """The candidates, those first that simplify most."""
    yield from _axes(case)
    yield from _element_types(plan, case)
    tensors = _tensors(plan, case)
    for values in _smaller(case.values, tensors):
        yield replace(case, values=values)


def _axes(case: Case) -> Iterator[Case]:
    if case.fill:
        yield replace(case, fill="")
    if case.view != "contiguous":
        yield replace(case, view="contiguous")
    if case.layout:
        yield replace(case, layout="")


def _element_types(plan: CasePlan, case: Case) -> Iterator[Case]:
    """Types that another case of the function has: those are legal."""
    found = {
        tuple(other.dtypes.items()): other
        for other in plan.cases
        if other.function == case.function and other.dtypes.keys() == case.dtypes.keys()
    }
    for other in sorted(found.values(), key=_plainness):
        if _plainness(other) < _plainness(case):
            yield replace(case, dtypes=other.dtypes, forward=other.forward)


def _plainness(case: Case) -> tuple[int, int]:
    used = set(case.dtypes.values())
    return len(used), sum(_PLAIN.index(dtype) if dtype in _PLAIN else len(_PLAIN) for dtype in used)


def _tensors(plan: CasePlan, case: Case) -> frozenset[str]:
    """The names of the case's values that are shapes of tensors, or lists of them."""
    function = plan.functions[case.function]
    params = [*function.params, *(plan.functions[function.plain].params if function.plain else ())]
    names = {name for p in params if p.is_tensor for name in (p.name, p.arg)}
    return frozenset(name for name, value in case.values.items() if name in names and isinstance(value, list))


# -- shapes --------------------------------------------------------------------------------------------------------


def _smaller(values: Values, tensors: frozenset[str]) -> Iterator[Values]:
    """One change each: equal sizes shrink together, then alone; dimensions and tensors of lists are left out."""
    shapes = [shape for name in sorted(tensors) for shape in _shapes(values[name])]
    sizes = sorted({size for shape in shapes for size in shape if size > 1}, reverse=True)
    for size in sizes:
        for less in _lesser(size):
            yield {name: _with_size(value, size, less) for name, value in values.items()}
            yield {name: _with_size(v, size, less) if name in tensors else v for name, v in values.items()}
    for place in range(-max(map(len, shapes), default=0), 0):
        for less in _lesser(max(shape[place] for shape in shapes if len(shape) >= -place)):
            yield _mapped(values, tensors, partial(_at, place=place, size=less))
    for name in sorted(tensors):
        yield from _alone(values, name)
    for place in range(-max(map(len, shapes), default=0), 0):
        yield _mapped(values, tensors, partial(_without, place=place))


def _alone(values: Values, name: str) -> Iterator[Values]:
    """Changes of one argument."""
    rank = max(map(len, _shapes(values[name])), default=0)
    for place in range(-rank, 0):
        for less in _lesser(max(shape[place] for shape in _shapes(values[name]) if len(shape) >= -place)):
            one = frozenset({name})
            yield _mapped(values, one, partial(_at, place=place, size=less))
    for place in range(-rank, 0):
        yield _mapped(values, frozenset({name}), partial(_without, place=place))
    listed = values[name]
    if len(listed) > 1 and all(isinstance(entry, list) for entry in listed):
        for kept in (listed[: len(listed) // 2], listed[len(listed) // 2 :], listed[:-1]):
            yield {**values, name: kept}


def _lesser(size: int) -> list[int]:
    """Sizes to try in place of `size`, the smallest first."""
    return sorted({n for n in (1, 2, 3, size // 2, size - 1) if 0 < n < size})


def _shapes(value: list[Any]) -> list[Shape]:
    """Of a tensor its shape, of a list of tensors all of theirs."""
    if all(isinstance(entry, int) for entry in value):
        return [value]
    return [entry for entry in value if isinstance(entry, list)]


def _with_size(value: Any, size: int, less: int) -> Any:
    """`value` with every whole number `size` replaced, also in lists."""
    if isinstance(value, list):
        return [_with_size(entry, size, less) for entry in value]
    return less if value == size and type(value) is int else value


def _mapped(values: Values, names: frozenset[str], change: Callable[[Shape], Shape]) -> Values:
    """`values` with every shape of the named tensors changed."""

    def changed(value: list[Any]) -> list[Any]:
        if all(isinstance(entry, int) for entry in value):
            return change(value)
        return [change(entry) if isinstance(entry, list) else entry for entry in value]

    return {name: changed(value) if name in names else value for name, value in values.items()}


def _at(shape: Shape, place: int, size: int) -> Shape:
    """`place` counts from the end; a size of a dimension never grows."""
    if len(shape) < -place or shape[place] <= size:
        return shape
    found = list(shape)
    found[place] = size
    return found


def _without(shape: Shape, place: int) -> Shape:
    if len(shape) < -place:
        return shape
    found = list(shape)
    del found[place]
    return found

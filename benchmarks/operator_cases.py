"""Which calls the operators are timed at: what models call, and rows of the schemas made long."""

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import Any

from diopi_conformance.cases.model_cases import model_cases
from diopi_conformance.cases.plan import Case, CasePlan, Function

LEAST = 1 << 16  # elements of the largest tensor
ROW = 1 << 18  # elements that rows are made long to
PER_FUNCTION = 3  # calls of models, the largest ones
_FORMS = ("out", "scalar", "backward")  # in-place forms run the same kernels


def large_cases(plan: CasePlan, row: int = ROW) -> list[tuple[Function, Case]]:
    """By function: its largest calls in models, and its first row of float32, or of what it has, made long."""
    models: dict[str, list[Case]] = {}
    for case in model_cases(plan):
        models.setdefault(case.function, []).append(case)
    rows: dict[str, list[Case]] = {}
    for case in plan.cases:
        if not (case.layout or case.fill or case.change) and case.view == "contiguous":
            rows.setdefault(case.function, []).append(case)
    found: list[tuple[Function, Case]] = []
    for function in plan.functions.values():
        if function.form in _FORMS:
            chosen = [*_largest(models.get(function.symbol, [])), *_rows(rows.get(function.symbol, []), row)]
            found += [(function, case) for case in chosen]
    return found


def _largest(cases: list[Case]) -> list[Case]:
    large = sorted((case for case in cases if case.largest >= LEAST), key=lambda case: (-case.largest, case.id))
    return large[:PER_FUNCTION]


def _rows(cases: list[Case], row: int) -> list[Case]:
    usual = [case for case in cases if case.elements.startswith("f32")] or cases
    return [enlarged(usual[0], row)] if usual else []


def enlarged(case: Case, least: int) -> Case:
    """The case with the outermost dimension of its largest tensor, and of all that share it, so many times longer."""
    if not 0 < case.largest < least:
        return case
    longest = max(_shapes(case), key=prod)
    times, lead = -(-least // prod(longest)), longest[0]

    def longer(value: Any) -> Any:
        if isinstance(value, list) and value and isinstance(value[0], list):
            return [longer(entry) for entry in value]
        return [lead * times, *value[1:]] if isinstance(value, list) and value and value[0] == lead else value

    tensors = case.dtypes.keys() | case.forward.keys()
    values = {name: longer(value) if name in tensors else value for name, value in case.values.items()}
    return replace(case, id=f"{case.id} x {times}", values=values)


def _shapes(case: Case) -> Iterator[list[int]]:
    for name, value in case.values.items():
        if name not in case.dtypes and name not in case.forward:
            continue
        for shape in value if isinstance(value, list) and value and isinstance(value[0], list) else [value]:
            if isinstance(shape, list) and shape and all(isinstance(n, int) for n in shape):
                yield shape

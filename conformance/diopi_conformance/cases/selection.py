"""Which cases of a plan are wanted."""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from diopi_conformance.cases.plan import Case, CasePlan, Function
from diopigen.vocabulary.loaded import DTYPES


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which cases are wanted; an empty field allows everything, patterns are globs."""

    functions: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    layouts: tuple[str, ...] = ()
    views: tuple[str, ...] = ()
    fills: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    origin: str = ""  # "row" for cases of schemas, "model" for calls of models; empty for both

    def of(self, plan: CasePlan) -> tuple[Case, ...]:
        """The wanted cases in the plan's order."""
        return tuple(case for case in plan.cases if self._wants(plan.functions[case.function], case))

    def _wants(self, function: Function, case: Case) -> bool:
        return (
            _matches(function.symbol, self.functions)
            and _matches(function.op, self.ops)
            and _matches(function.topic, self.topics)
            and _any_matches(case.dtypes.values(), tuple(map(short_dtype, self.dtypes)))
            and _matches(case.layout, self.layouts)
            and _matches(case.view, self.views)
            and _matches(case.fill, self.fills)
            and _matches(case.change, self.changes)
            and _any_matches(case.models, self.models)
            and _matches(case.id, self.ids)
            and self.origin in ("", "model" if case.models else "row")
        )


def short_dtype(name: str) -> str:
    """The plan's name of an element type: e.g. "bf16" for "bfloat16"; a name that is no long one stays."""
    dtype = DTYPES.meant(name)
    return name if dtype is None else dtype.name


def shard(cases: tuple[Case, ...], index: int, count: int) -> tuple[Case, ...]:
    """Every `count`-th case, from the `index`-th on; indices count from 1."""
    return cases[index - 1 :: count]


def sampled(cases: tuple[Case, ...], count: int) -> tuple[Case, ...]:
    """`count` cases of each function that has cases among these, in the same order.

    The first is of float32 where there is such a case, each next one of other element types while there are any; among
    equals a usual call of a schema's row goes first, then the one with the fewest elements.
    """
    functions: dict[str, list[Case]] = {}
    for case in cases:
        functions.setdefault(case.function, []).append(case)
    wanted = {case.id for of_function in functions.values() for case in _sample(of_function, count)}
    return tuple(case for case in cases if case.id in wanted)


def _sample(cases: list[Case], count: int) -> list[Case]:
    """`count` of one function's cases."""
    left = sorted(cases, key=_cost)
    taken: list[Case] = []
    while left and len(taken) < count:
        had = {case.elements for case in taken}
        best = min(left, key=lambda case: (case.elements in had, not taken and "f32" not in case.dtypes.values()))
        left.remove(best)
        taken.append(best)
    return taken


def _cost(case: Case) -> tuple[bool, int, bool, int]:
    """Orders cases: those that show what is usual, and then those that take least."""
    unusual = (case.layout != "") + (case.view != "contiguous") + (case.fill != "") + (case.change != "")
    return bool(case.models), unusual, case.largest == 0, case.largest


def _matches(text: str, patterns: Iterable[str]) -> bool:
    wanted = tuple(patterns)
    return not wanted or any(fnmatchcase(text, pattern) for pattern in wanted)


def _any_matches(texts: Iterable[str], patterns: tuple[str, ...]) -> bool:
    return not patterns or any(fnmatchcase(text, pattern) for text in texts for pattern in patterns)

"""Random functions, judged by what their numbers must be like, over all draws of a case, and by generators' states.

statistics.py says how often these tests err.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from diopi_conformance.judgement import statistics
from diopi_conformance.judgement.tolerance import ulp
from diopi_conformance.values.elements import Array

if TYPE_CHECKING:
    from diopi_conformance.prepare import Prepared

Actual = dict[str, Any]  # by output
_ROUNDING = {"f16": 2e-3, "bf16": 1e-2}  # a type's own share of an error in the mean
_FEW = 64  # values that are counted one by one


@dataclass(frozen=True, slots=True)
class Draws:
    """The outputs of calls that must be independent, the first of them the case's own, and of two that need not be."""

    independent: list[Actual]
    same: Actual | None = None  # from the state of the first call
    other: Actual | None = None  # from other seeds


Judge = Callable[["Prepared", Draws], str]


def distribution_check(prepared: "Prepared", draws: Draws) -> str:
    """What is wrong with the outputs of a random function, empty where nothing is."""
    judge = _JUDGES.get(prepared.function.symbol)
    if judge is None:
        return f"there is no judgement for the random function '{prepared.function.symbol}'"
    return judge(prepared, draws) or _states(draws)


def _states(draws: Draws) -> str:
    """The same state gives the same numbers; a state that went on, or another seed, gives others."""
    first = draws.independent[0]
    if draws.same is not None and not all(_equal(first[name], draws.same[name]) for name in first):
        return "the same state of the generator gives other numbers"
    if any(_predictable(name, draws) for name in first):
        return ""
    if any(all(_equal(a[name], b[name]) for name in a) for a, b in pairwise(draws.independent)):
        return "two draws in a row are the same: the generator's state does not go on"
    if draws.other is not None and all(_equal(first[name], draws.other[name]) for name in first):
        return "another seed gives the same numbers"
    return ""


def _predictable(name: str, draws: Draws) -> bool:
    values = np.concatenate([np.asarray(d[name]).reshape(-1) for d in draws.independent])
    return statistics.alike_by_chance(values, np.size(draws.independent[0][name]))


def _equal(a: Any, b: Any) -> bool:
    return np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind == "f")


def _each(draws: Draws) -> list[Array]:
    """The only output of each draw."""
    return [np.asarray(next(iter(d.values())), dtype=np.float64) for d in draws.independent]


def _all(values: list[Array]) -> Array:
    return np.concatenate([v.reshape(-1) for v in values])


def _dtype(prepared: "Prepared", draws: Draws) -> str:
    (name,) = draws.independent[0]
    return prepared.case.dtypes[name]


def _slack(prepared: "Prepared") -> float:
    return max((_ROUNDING.get(d, 0.0) for d in prepared.case.dtypes.values()), default=0.0)


def _uniform(prepared: "Prepared", draws: Draws) -> str:
    each = _each(draws)
    values, lo, hi = _all(each), prepared.values["from"], prepared.values["to"]
    if values.size and (values.min() < lo or values.max() > hi):
        return f"the numbers leave [{lo}, {hi})"
    return (
        statistics.moments(values, (lo + hi) / 2, (hi - lo) / np.sqrt(12), 1.8, _slack(prepared))
        or statistics.shape(
            values, lambda x: np.clip((x - lo) / (hi - lo), 0.0, 1.0), ulp(values, _dtype(prepared, draws))
        )
        or statistics.independent(each)
    )


def _normal(prepared: "Prepared", draws: Draws) -> str:
    """Standardizes by the means and deviations that were asked for, numbers or tensors."""
    mean, std = prepared.values["mean"], prepared.values["std"]
    scale = np.where(np.asarray(std) == 0, 1.0, std)
    each = [(v - mean) / scale for v in _each(draws)]
    far = float(np.max(np.abs(np.asarray(mean)))) if np.size(mean) else 0.0
    if np.size(std) == 1 and float(np.asarray(std).reshape(())) == 0:
        return "" if not np.any(_all(each)) else "numbers without deviation are not their mean"
    step = _all([np.asarray(ulp(v, _dtype(prepared, draws)) / scale) for v in _each(draws)])
    values = _all(each)
    return (
        statistics.moments(values, 0.0, 1.0, 3.0, _slack(prepared) * (1 + far))
        or statistics.shape(values, statistics.normal, step)
        or statistics.independent(each)
    )


def _bernoulli(prepared: "Prepared", draws: Draws) -> str:
    each, given = _each(draws), prepared.values
    p = given.get("p")
    if p is None:
        tensor = next(q.name for q in prepared.function.params if q.is_tensor and q.role in ("in", "inout"))
        p = given[tensor]
    values = _all(each)
    if values.size and not np.isin(values, (0.0, 1.0)).all():
        return "there are numbers other than 0 and 1"
    chances = _all([np.broadcast_to(np.asarray(p, dtype=np.float64), v.shape) for v in each])
    certain = (chances == 0) | (chances == 1)
    if (values[certain] != chances[certain]).any():
        return "a certain draw went the other way"
    for lo, hi in ((0.0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1.01)):  # a chance for each, not one for all
        chosen = (chances >= lo) & (chances < hi)
        if message := statistics.frequency(values[chosen], chances[chosen]):
            return message
    return statistics.independent([v - np.broadcast_to(np.asarray(p, dtype=np.float64), v.shape) for v in each])


def _random(prepared: "Prepared", draws: Draws) -> str:
    each = _each(draws)
    values, lo, hi = _all(each), prepared.values["from"], prepared.values.get("to")
    if values.size and (values != np.floor(values)).any():
        return "there are numbers that are no integers"
    if hi is None:
        if values.size and values.min() < lo:
            return f"there are numbers below {lo}"
        return "all numbers are the same" if values.size >= 100 and np.ptp(values) == 0 else ""
    if values.size and (values.min() < lo or values.max() >= hi):
        return f"the numbers leave [{lo}, {hi})"
    span = hi - lo
    for value in range(lo, hi) if span <= _FEW else ():
        if message := statistics.frequency((values == value) * 1.0, np.full(values.size, 1 / span)):
            return f"{value}: {message}"
    return statistics.shape(
        values, lambda x: np.clip((np.floor(x) - lo + 1) / span, 0.0, 1.0), _whole_step(values, prepared, draws)
    ) or statistics.independent(each)


def _whole_step(values: Array, prepared: "Prepared", draws: Draws) -> Array:
    """At least one: the distribution function of whole numbers has steps."""
    return np.maximum(ulp(values, _dtype(prepared, draws)), 1.0)


def _randperm(_prepared: "Prepared", draws: Draws) -> str:
    each = _each(draws)
    count = each[0].size
    if any(not np.array_equal(np.sort(v), np.arange(count)) for v in each):
        return "the numbers are no permutation"
    fixed = sum(int(np.count_nonzero(v == np.arange(count))) for v in each)
    if fixed > len(each) + 12 * np.sqrt(len(each)) + 20:  # one for each draw is usual
        return f"{fixed} of {count * len(each)} numbers stay in their places"
    if count > 20 and any(np.array_equal(v, np.arange(count)) for v in each):
        return "the permutation leaves everything in place"
    return _spread(np.stack(each).astype(np.int64))


def _spread(orders: Array) -> str:
    """Whether each quarter of the places gets its share of each quarter of the numbers.

    How many it gets of one order varies less than that many independent draws would.
    """
    count = orders.shape[1]
    for places in np.array_split(np.arange(count), 4):
        for numbers in np.array_split(np.arange(count), 4):
            hits = np.isin(orders[:, places], numbers)
            if off := statistics.frequency(hits, np.full(hits.shape, numbers.size / max(1, count))):
                return f"of the places from {places[0]} on that hold numbers from {numbers[0]} on, {off}"
    return ""


def _dropout(prepared: "Prepared", draws: Draws) -> str:
    source, p = np.asarray(prepared.values["input"], dtype=np.float64), float(prepared.values["p"])
    masks: list[Array] = []
    for draw in draws.independent:
        out = np.asarray(draw["out"] if "out" in draw else draw["input"], dtype=np.float64)
        if not prepared.values["train"]:
            if not np.array_equal(out, source):
                return "the input is changed outside of training"
            continue
        mask = np.broadcast_to(np.asarray(draw["mask"]) != 0, out.shape)
        wanted = np.where(mask, source * (0.0 if p == 1 else 1 / (1 - p)), 0.0)
        slack = 2 * max(_slack(prepared), 1e-6)
        if (np.abs(out - wanted) > slack * (1 + np.abs(wanted))).any():
            return "the output is not the input where the mask is set, scaled, and 0 elsewhere"
        masks.append(mask.astype(np.float64))
    if not masks:
        return ""
    kept = _all(masks)
    return statistics.frequency(kept, np.full(kept.shape, 1 - p)) or statistics.independent(masks)


def _multinomial(prepared: "Prepared", draws: Draws) -> str:
    weights = np.atleast_2d(prepared.values["input"])
    each = [np.atleast_2d(v).astype(np.int64) for v in _each(draws)]
    indices = np.concatenate(each, axis=1)
    if indices.size and (indices.min() < 0 or indices.max() >= weights.shape[1]):
        return "an index is out of range"
    if (np.take_along_axis(weights, indices, 1) <= 0).any():
        return "a draw has probability 0"
    repeated = any(np.unique(row).size < row.size for v in each for row in v)
    if not prepared.values["replacement"] and repeated:
        return "a draw without replacement is repeated"
    # Without replacement only the first number of each draw follows the weights.
    followed = indices if prepared.values["replacement"] else np.concatenate([v[:, :1] for v in each], axis=1)
    for row, share in zip(followed, weights / weights.sum(axis=1, keepdims=True), strict=True):
        for place, chance in enumerate(share.tolist()):
            if statistics.frequency((row == place) * 1.0, np.full(row.size, chance)):
                return f"the draws do not follow the weights: {place} has {chance:.3g}"
    return ""


_JUDGES: dict[str, Judge] = {
    "diopiBernoulli": _bernoulli,
    "diopiBernoulliInp": _bernoulli,
    "diopiBernoulliScalar": _bernoulli,
    "diopiDropout": _dropout,
    "diopiDropoutInp": _dropout,
    "diopiMultinomial": _multinomial,
    "diopiNormal": _normal,
    "diopiNormalInp": _normal,
    "diopiNormalScalarTensor": _normal,
    "diopiNormalTensor": _normal,
    "diopiNormalTensorScalar": _normal,
    "diopiRandomInp": _random,
    "diopiRandperm": _randperm,
    "diopiUniformInp": _uniform,
}

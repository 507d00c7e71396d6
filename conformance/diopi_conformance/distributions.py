"""Random functions, judged by what their numbers must be like: range, moments, and which values can occur.

The bounds are six standard errors wide, so a right library fails about once in a billion cases.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from diopi_conformance.elements import Array

if TYPE_CHECKING:
    from diopi_conformance.prepare import Prepared

Actual = dict[str, Any]
Judge = Callable[["Prepared", Actual], str]

_WIDTH = 6.0  # standard errors
_ROUNDING = {"f16": 2e-3, "bf16": 1e-2}  # a type's own share of an error in the mean


def distribution_check(prepared: "Prepared", actual: Actual) -> tuple[tuple[str, ...], str]:
    """Judges every output of a random function."""
    judge = _JUDGES.get(prepared.function.symbol)
    if judge is None:
        return tuple(actual), f"there is no judgement for the random function '{prepared.function.symbol}'"
    return tuple(actual), judge(prepared, actual)


def _only(actual: Actual) -> Array:
    (values,) = actual.values()
    return np.asarray(values, dtype=np.float64)


def _moments(values: Array, mean: float, std: float, slack: float) -> str:
    """Whether mean and standard deviation of independent values are near what they should be."""
    count = values.size
    if count == 0:
        return ""
    if not np.isfinite(values).all():
        return "the numbers are not all finite"
    bound = _WIDTH * std / np.sqrt(count) + slack * (abs(mean) + std)
    if abs(values.mean() - mean) > bound:
        return f"the mean is {values.mean():.6g}, expected {mean:.6g} within {bound:.2g}"
    wide = _WIDTH * std / np.sqrt(max(1, count)) + slack * (abs(mean) + std)
    if count >= 100 and abs(values.std() - std) > 1.5 * wide:
        return f"the standard deviation is {values.std():.6g}, expected {std:.6g} within {1.5 * wide:.2g}"
    if count >= 100 and std > 0 and np.unique(values).size < 2:
        return "all numbers are the same"
    return ""


def _slack(prepared: "Prepared") -> float:
    return max((_ROUNDING.get(d, 0.0) for d in prepared.case.dtypes.values()), default=0.0)


def _independent(values: Array) -> str:
    """Whether neighbours go together, as they would where a generator repeats itself."""
    flat = values.reshape(-1)
    if flat.size < 100 or flat.std() == 0:
        return ""
    correlation = float(np.corrcoef(flat[:-1], flat[1:])[0, 1])
    bound = _WIDTH / np.sqrt(flat.size)
    return f"neighbours are correlated by {correlation:.3f}" if abs(correlation) > bound else ""


def _uniform(prepared: "Prepared", actual: Actual) -> str:
    values = _only(actual)
    lo, hi = prepared.values["from"], prepared.values["to"]
    if values.size and (values.min() < lo or values.max() > hi):
        return f"the numbers leave [{lo}, {hi})"
    return _moments(values, (lo + hi) / 2, (hi - lo) / np.sqrt(12), _slack(prepared)) or _independent(values)


def _normal(prepared: "Prepared", actual: Actual) -> str:
    """Standardizes by the means and deviations that were asked for, numbers or tensors."""
    mean, std = prepared.values["mean"], prepared.values["std"]
    values = (_only(actual) - mean) / np.where(np.asarray(std) == 0, 1.0, std)
    scale = float(np.max(np.abs(np.asarray(mean)))) if np.size(mean) else 0.0
    return _moments(values, 0.0, 1.0, _slack(prepared) * (1 + scale)) or _independent(values)


def _bernoulli(prepared: "Prepared", actual: Actual) -> str:
    values = _only(actual)
    given = prepared.values
    p = given.get("p")
    if p is None:
        tensor = next(q.name for q in prepared.function.params if q.is_tensor and q.role in ("in", "inout"))
        p = given[tensor]
    if values.size and not np.isin(values, (0.0, 1.0)).all():
        return "there are numbers other than 0 and 1"
    chances = np.broadcast_to(np.asarray(p, dtype=np.float64), values.shape)
    certain = (chances == 0) | (chances == 1)
    if (values[certain] != chances[certain]).any():
        return "a certain draw went the other way"
    return _frequency(values, chances)


def _frequency(values: Array, chances: Array) -> str:
    if values.size == 0:
        return ""
    bound = _WIDTH * np.sqrt((chances * (1 - chances)).sum()) / values.size + 1e-12
    if abs(values.mean() - chances.mean()) > bound:
        return f"{values.mean():.4g} of the draws are 1, expected {chances.mean():.4g} within {bound:.2g}"
    return ""


def _random(prepared: "Prepared", actual: Actual) -> str:
    values = _only(actual)
    lo, hi = prepared.values["from"], prepared.values.get("to")
    if values.size and (values != np.floor(values)).any():
        return "there are numbers that are no integers"
    if hi is None:
        return "" if values.size == 0 or values.min() >= lo else f"there are numbers below {lo}"
    if values.size and (values.min() < lo or values.max() >= hi):
        return f"the numbers leave [{lo}, {hi})"
    span = hi - lo
    return _moments(values, (lo + hi - 1) / 2, np.sqrt((span**2 - 1) / 12), _slack(prepared)) or _independent(values)


def _randperm(prepared: "Prepared", actual: Actual) -> str:
    values = _only(actual)
    if not np.array_equal(np.sort(values), np.arange(values.size)):
        return "the numbers are no permutation"
    if values.size > 20 and np.array_equal(values, np.arange(values.size)):
        return "the permutation leaves everything in place"
    return ""


def _dropout(prepared: "Prepared", actual: Actual) -> str:
    given: Mapping[str, Any] = prepared.values
    source = np.asarray(given["input"], dtype=np.float64)
    out = np.asarray(actual["out"] if "out" in actual else actual["input"], dtype=np.float64)
    p = float(given["p"])
    if not given["train"]:
        return "" if np.array_equal(out, source) else "the input is changed outside of training"
    mask = np.broadcast_to(np.asarray(actual["mask"]) != 0, out.shape)
    scale = 0.0 if p == 1 else 1 / (1 - p)
    wanted = np.where(mask, source * scale, 0.0)
    slack = 2 * max(_slack(prepared), 1e-6)
    if (np.abs(out - wanted) > slack * (1 + np.abs(wanted))).any():
        return "the output is not the input where the mask is set, scaled, and 0 elsewhere"
    return _frequency(mask.astype(np.float64), np.full(mask.shape, 1 - p))


def _multinomial(prepared: "Prepared", actual: Actual) -> str:
    indices = np.atleast_2d(_only(actual)).astype(np.int64)
    weights = np.atleast_2d(prepared.values["input"])
    if indices.size and (indices.min() < 0 or indices.max() >= weights.shape[1]):
        return "an index is out of range"
    chances = np.take_along_axis(weights, indices, 1)
    if (chances <= 0).any():
        return "a draw has probability 0"
    if not prepared.values["replacement"] and any(np.unique(row).size < row.size for row in indices):
        return "a draw without replacement is repeated"
    if prepared.values["replacement"]:
        share = weights / weights.sum(axis=1, keepdims=True)
        for row, expected in zip(indices, share, strict=True):
            found = np.bincount(row, minlength=expected.size) / max(1, row.size)
            bound = _WIDTH * np.sqrt(expected * (1 - expected) / max(1, row.size)) + 1e-12
            if (np.abs(found - expected) > bound).any():
                return "the draws do not follow the weights"
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

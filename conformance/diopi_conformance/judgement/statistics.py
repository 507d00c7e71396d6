"""Tests of random numbers that err with a probability of 1e-12 at most each, whatever the sample.

A run makes fewer than a million of them, so a right library fails in one run of a million at most (Bonferroni). Sizes
of samples decide about power alone: what is too small to tell passes.
"""

from collections.abc import Callable
from itertools import pairwise
from math import erf, log, sqrt

import numpy as np

from diopi_conformance.values.elements import Array

ERROR = 1e-12
_Z = 7.2  # standard errors: a normal number is further off with a probability of 6e-13
_ENOUGH = 1000  # numbers for what is true of large samples only


def frequency(hits: Array, chances: Array) -> str:
    """Independent draws of 0 and 1 with these chances; Chernoff's bound, also for chances that differ."""
    count = hits.size
    if count == 0:
        return ""
    found, expected = float(hits.mean()), float(chances.mean())
    if count * _divergence(found, expected) <= log(2 / ERROR):
        return ""
    return f"{found:.4g} of {count} draws are 1, expected {expected:.4g}"


def _divergence(a: float, b: float) -> float:
    """Kullback and Leibler's, of two coins."""
    total = 0.0
    for x, y in ((a, b), (1 - a, 1 - b)):
        if x > 0:
            total += x * log(x / y) if y > 0 else float("inf")
    return total


def moments(values: Array, mean: float, std: float, kurtosis: float, slack: float) -> str:
    """Mean and standard deviation of independent numbers; `slack` is the share of an error that is rounding's."""
    count = values.size
    if count == 0:
        return ""
    if not np.isfinite(values).all():
        return "the numbers are not all finite"
    bound = _Z * std / sqrt(count) + slack * (abs(mean) + std)
    if abs(values.mean() - mean) > bound:
        return f"the mean is {values.mean():.6g}, expected {mean:.6g} within {bound:.2g}"
    if count < _ENOUGH:
        return ""
    wide = 0.6 * _Z * std * sqrt((kurtosis - 1) / count) + slack * (abs(mean) + std)
    if abs(values.std() - std) > wide:
        return f"the standard deviation is {values.std():.6g}, expected {std:.6g} within {wide:.2g}"
    return ""


def shape(values: Array, cumulative: Callable[[Array], Array], step: Array) -> str:
    """Kolmogorov and Smirnov's distance with the bound of Dvoretzky, Kiefer and Wolfowitz, true of every sample.

    `step` is by how much each number may have been rounded.
    """
    count = values.size
    if count == 0:
        return ""
    order = np.argsort(values, axis=None)
    numbers, steps = values.reshape(-1)[order], np.broadcast_to(step, values.shape).reshape(-1)[order]
    below = np.searchsorted(numbers, numbers, side="left") / count
    upto = np.searchsorted(numbers, numbers, side="right") / count
    high, low = cumulative(numbers + steps), cumulative(numbers - steps)
    distance = float(max((upto - high).max(), (low - below).max(), 0.0))
    bound = sqrt(log(2 / ERROR) / (2 * count))
    return "" if distance <= bound else f"the distribution is {distance:.3g} off, more than {bound:.2g}"


def normal(values: Array) -> Array:
    """The standard normal distribution function."""
    return np.asarray([0.5 * (1 + erf(x / sqrt(2))) for x in values.tolist()])


def independent(draws: list[Array]) -> str:
    """Whether numbers of a draw go together with those some places further, or with those of the draw after."""
    for draw in draws:
        flat = draw.reshape(-1)
        lags = [*range(1, 9), *(1 << k for k in range(4, 20))]
        for lag in (n for n in lags if flat.size - n >= _ENOUGH):
            if off := _correlation(flat[:-lag], flat[lag:]):
                return f"numbers {lag} apart are correlated by {off:.3f}"
    for first, second in pairwise(draws):
        if first.size >= _ENOUGH and (off := _correlation(first.reshape(-1), second.reshape(-1))):
            return f"two draws in a row are correlated by {off:.3f}"
    return ""


def _correlation(a: Array, b: Array) -> float:
    """0 where it may be chance: Bernstein's bound of a sum of products, which a few rare numbers may make up."""
    if np.ptp(a) == 0 or np.ptp(b) == 0:  # their deviation need not be: the mean is rounded
        return 0.0
    first, second = ((x - x.mean()) / x.std() for x in (a, b))
    found = float((first * second).mean())
    largest, odds = float(np.abs(first).max() * np.abs(second).max()), log(2 / ERROR)
    return found if abs(found) > sqrt(2 * odds / a.size) + largest * odds / (3 * a.size) else 0.0


def alike_by_chance(values: Array, count: int) -> bool:
    """Whether two independent draws of `count` such numbers may be the same: how often two numbers of these are."""
    if values.size < 2 or count == 0:
        return True
    _, counts = np.unique(values, return_counts=True)
    pairs = float((counts / values.size) @ (counts / values.size))
    return count * log(pairs) > log(ERROR) if pairs < 1 else True

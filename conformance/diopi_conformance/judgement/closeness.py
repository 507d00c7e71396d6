"""Compares every element of one output with its exact value, and says what the wrong ones look like."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from diopi_conformance.judgement.fault import Closeness, Fault
from diopi_conformance.judgement.tolerance import PRECISION, Measure, Tolerance, ulp
from diopi_conformance.values.elements import Array, rounded
from diopigen.vocabulary.loaded import DTYPE


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One output of a call, before it is judged."""

    label: str  # e.g. "out", "tensors[2]"
    dtype: str
    actual: Array
    exact: Array  # not rounded
    before: Array | None = None  # what was there before the call; None where the function allocated
    inputs: Mapping[str, Array] = field(default_factory=dict)  # by name: what it may be a copy of


def compared(output: Output, tolerance: Tolerance, measure: Measure | None = None) -> Fault | Closeness:
    """The worst wrong element, or how close all are. `measure` is asked only where an element needs it."""
    if output.actual.size == 0:
        return Closeness()
    if not np.issubdtype(output.exact.dtype, np.inexact):
        return _same(output)
    target = rounded(output.exact, output.dtype) if tolerance.exact else output.exact
    error = _errors(output, target)
    if tolerance.exact and DTYPE[output.dtype].half:  # PyTorch makes them of float32, whatever it comes from
        error = np.where(output.actual == rounded(rounded(output.exact, "f32"), output.dtype), 0.0, error)
    bound = tolerance.near(target)
    wrong = error > bound
    if wrong.any() and tolerance.measured and measure is not None:
        bound = np.maximum(bound, tolerance.wide(target, measure()))
        wrong = error > bound
    wrong &= ~_overflows(output, target, bound)
    steps = _steps(error, target, output.dtype)
    if not wrong.any():
        finite = np.isfinite(error)
        return Closeness(
            error=float(error[finite].max(initial=0.0)),
            ulp=float(steps[finite].max(initial=0.0)) if output.dtype in PRECISION else None,
        )
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        excess = np.where(wrong, error / np.maximum(bound, np.finfo(np.float64).tiny), 0.0)
    return _fault(output, wrong, excess, error, steps)


def _same(output: Output) -> Fault | Closeness:
    """Integers and bool are equal or not."""
    wrong = output.actual != output.exact
    if not wrong.any():
        return Closeness()
    error = wrong.astype(np.float64)
    if output.exact.dtype != np.bool_:
        error = np.abs(output.actual.astype(np.float64) - output.exact.astype(np.float64))
    return _fault(output, wrong, np.where(wrong, np.maximum(error, 1.0), 0.0), error, None)


def _errors(output: Output, target: Array) -> Array:
    """Infinite where one is NaN or infinite and the other is not the same."""
    held = rounded(target, output.dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        same = (output.actual == held) | (np.isnan(output.actual) & np.isnan(held))
        error = np.abs(output.actual - target)
        settled = same & ~np.isfinite(target) | same & ~np.isfinite(held)
        return np.asarray(np.where(settled, 0.0, np.where(np.isnan(error), np.inf, error)))


def _steps(error: Array, target: Array, dtype: str) -> Array:
    """Errors in ULP, of elements that are smaller than most in ULP of the median: alone they are next to nothing."""
    size = np.abs(np.where(np.isfinite(target), target, 0.0))
    with np.errstate(over="ignore"):
        found: Array = error / np.maximum(ulp(np.maximum(size, np.median(size)), dtype), np.finfo(np.float64).tiny)
    return found


def _overflows(output: Output, target: Array, bound: Array) -> Array:
    """Infinity in place of a number that the type may just not hold."""
    precision = PRECISION.get(output.dtype)
    if precision is None:
        return np.zeros(target.shape, dtype=bool)
    with np.errstate(invalid="ignore", over="ignore"):
        reached = np.isfinite(target) & (np.abs(target) + bound > precision.largest)
        return np.asarray(reached & np.isinf(output.actual) & (np.sign(output.actual) == np.sign(target)))


def _fault(output: Output, wrong: Array, excess: Array, error: Array, steps: Array | None) -> Fault:
    """About the element that is furthest beyond its bound; of several the first."""
    flat = int(np.argmax(excess))
    index = tuple(int(i) for i in np.unravel_index(flat, wrong.shape))
    place = f"{output.label}{list(index)}" if index else output.label
    off = None if steps is None or output.dtype not in PRECISION else float(steps[index])
    apart = f", {off:.3g} ULP off" if off is not None and np.isfinite(off) else ""
    counted = f"{int(np.count_nonzero(wrong))} of {wrong.size} {'is' if wrong.size == 1 else 'are'} wrong"
    kind = _kind(output, wrong)
    return Fault(
        message=f"{place} is {_text(output.actual[index])}, expected {_text(output.exact[index])}{apart} "
        f"({counted}{f': {kind}' if kind else ''})",
        output=output.label,
        index=index,
        error=float(error.reshape(-1)[flat]),
        ulp=off,
    )


def _text(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _kind(output: Output, wrong: Array) -> str:
    """What all wrong elements have in common, where that is certain."""
    found = output.actual[wrong]
    if output.before is not None and _equal(found, output.before[wrong]):
        return "untouched"
    if not found.any():
        return "all zeros"
    if np.issubdtype(found.dtype, np.inexact):
        finite = np.isfinite(output.exact[wrong])
        if np.isnan(found).all() and finite.all():
            return "NaN where the result is finite"
        if np.isfinite(found).all() and not finite.any():
            return "finite where the result is not"
        if found.size > 1 and np.allclose(found, -output.exact[wrong], rtol=1e-2, atol=0.0):
            return "the other sign"
    for name, values in output.inputs.items():
        if values.shape == output.actual.shape and values.size > 1 and _equal(found, values[wrong]):
            return f"equal to '{name}'"
    return ""


def _equal(a: Array, b: Array) -> bool:
    with np.errstate(invalid="ignore"):
        return bool(((a == b) | ((a != a) & (b != b))).all())

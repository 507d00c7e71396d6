"""Whether a result is what the reference gives, by the rule of the conformance suite.

The reference is computed on the CPU, floats in float64. How far a result may be from it follows from the dtypes that it
passes through and from how the operator's own terms answer to changes of its inputs, or is the schema's `tolerance`, or
what the environment says.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from diopi_conformance.judgement.closeness import Output, compared
from diopi_conformance.judgement.fault import Fault
from diopi_conformance.judgement.tolerance import Measure, Tolerance, precision_of, tolerance_of, ulp
from diopi_conformance.values.elements import Array
from diopigen.vocabulary.dtype import Kind
from diopigen.vocabulary.loaded import DTYPES as CONTRACT
from diopigen.vocabulary.torch_dtypes import DTYPE_OF
from op_tools import environment
from op_tools.contract import entry_of
from op_tools.overloads import Overload

# Floats and complex numbers by their name in the contract; those with the most digits first.
DTYPES = {
    torch_dtype: dtype.name
    for torch_dtype, dtype in sorted(DTYPE_OF.items(), key=lambda row: -CONTRACT.real_of(row[1]).digits)
    if dtype.kind in (Kind.FLOAT, Kind.COMPLEX) and dtype.numpy is not None
}
_BINS = (0.5, 1, 2, 4, 8, 16, 64, 1024)  # of the histogram of errors, in ULP


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How one result of one call compares with the reference."""

    place: str  # e.g. "result[0]", "self"
    good: bool
    message: str  # what is wrong; empty where nothing is
    index: tuple[int, ...]  # of the worst wrong element
    cosine: float  # of the angle between both, as vectors
    absolute: float  # the largest error
    relative: float  # the largest error of an element, by its size
    ulp: float | None  # the largest error in units of the last place; None for integers
    histogram: tuple[int, ...]  # elements by error in ULP: up to 0.5, 1, 2, 4, 8, 16, 64, 1024, more
    allowed: tuple[float, float] | None  # absolute, relative, where they were given; None: by the rule
    layout: str  # where the strides differ from the reference's: both


def numbers(tensor: torch.Tensor) -> Array:
    """The elements on the CPU: floats as float64, complex numbers as complex128, others as they are."""
    host = tensor.detach().resolve_conj().resolve_neg().cpu()
    if host.is_complex():
        return host.to(torch.complex128).numpy()
    return (host.double() if host.is_floating_point() else host).numpy()


def tolerance_for(overload: Overload, function: str, dtype: torch.dtype, inputs: set[torch.dtype]) -> Tolerance:
    """Of results of `dtype` made of inputs of these dtypes. Raises BadVariable for what the environment says wrong."""
    own = environment.tolerance(_words(overload, function), str(dtype).removeprefix("torch."))
    if own is not None:
        return Tolerance(dtype=DTYPES.get(dtype, "bool"), exact=dtype not in DTYPES, pair=(own[1], own[0]))
    entry = entry_of(overload)
    passed = [name for known, name in DTYPES.items() if known in (*inputs, dtype)]
    elementwise = torch.Tag.pointwise in overload.function.tags if entry is None else entry.elementwise
    return tolerance_of(
        (DTYPES.get(dtype, "bool"),) if dtype not in DTYPES else passed,
        exact=entry is not None and entry.exact,
        pairs={} if entry is None else entry.tolerance,
        elementwise=elementwise,
    )


def _words(overload: Overload, function: str) -> tuple[str, ...]:
    """What the environment may call an operator, e.g. ("LINEAR", "ADDMM")."""
    return tuple(dict.fromkeys(word.rpartition(".")[2].upper() for word in (function, overload.packet) if word))


def difference(
    place: str,
    actual: torch.Tensor,
    exact: torch.Tensor,
    bound: Tolerance,
    measure: Measure,
    inputs: Mapping[str, Array],
) -> Difference:
    """Compares one result of a device with that of the reference."""
    found, wanted = numbers(actual), numbers(exact)
    strides = actual.stride(), exact.stride()
    layout = (
        f"{list(strides[0])} for {list(strides[1])}" if actual.shape == exact.shape and strides[0] != strides[1] else ""
    )
    if found.shape != wanted.shape:
        message = f"{place} has shape {tuple(found.shape)}, expected {tuple(wanted.shape)}"
        return _unlike(place, message)
    dtype = DTYPES.get(actual.dtype, "bool")
    if wanted.dtype.kind not in "fc":
        found = found.astype(wanted.dtype)
    elif found.dtype.kind not in "fc":
        wanted = wanted.astype(found.dtype)
    judged = compared(Output(label=place, dtype=dtype, actual=found, exact=wanted, inputs=inputs), bound, measure)
    fault = judged if isinstance(judged, Fault) else None
    error, relative, steps = _errors(found, wanted, dtype)
    return Difference(
        place=place,
        good=fault is None,
        message=fault.message if fault else "",
        index=fault.index if fault else (),
        cosine=_cosine(found, wanted),
        absolute=float(error.max(initial=0.0)),
        relative=float(relative.max(initial=0.0)),
        ulp=float(steps.max(initial=0.0)) if precision_of(dtype) is not None else None,
        histogram=tuple(int(n) for n in np.histogram(steps, (-1.0, *_BINS, np.inf))[0]),
        allowed=None if bound.pair is None else (bound.pair[1], bound.pair[0]),
        layout=layout,
    )


def _unlike(place: str, message: str) -> Difference:
    return Difference(
        place=place,
        good=False,
        message=message,
        index=(),
        cosine=math.nan,
        absolute=math.inf,
        relative=math.inf,
        ulp=None,
        histogram=(),
        allowed=None,
        layout="",
    )


def _errors(found: Array, wanted: Array, dtype: str) -> tuple[Array, Array, Array]:
    """By element: the error, by the element's size, and in ULP; where both are the same infinity or NaN, none."""
    wide = np.complex128 if found.dtype.kind == "c" else np.float64
    a, b = found.astype(wide), wanted.astype(wide)
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        error = np.where(same, 0.0, np.abs(a - b))
        error = np.where(np.isnan(error), np.inf, error)
        relative = np.where(error == 0, 0.0, error / np.abs(b))
        unit = ulp(np.abs(b), dtype)
        steps = np.where(error == 0, 0.0, error / np.where(unit == 0, 1.0, unit))
    return error, np.where(np.isnan(relative), np.inf, relative), np.where(np.isnan(steps), np.inf, steps)


def _cosine(found: Array, wanted: Array) -> float:
    a, b = (_unit(values.astype(np.complex128).reshape(-1)) for values in (found, wanted))
    if not a.any() or not b.any():
        return float(not a.any() and not b.any())
    return float(np.vdot(a, b).real)


def _unit(vector: Array) -> Array:
    """The direction of a vector, its infinities and NaN left out."""
    finite = np.where(np.isfinite(vector), vector, 0.0)
    largest = np.abs(finite).max(initial=0.0)
    if not largest:
        return finite
    scaled = finite / largest
    return np.asarray(scaled / np.linalg.norm(scaled))


def facts(difference: Difference) -> dict[str, Any]:
    """A difference as JSON holds it."""
    return {name: getattr(difference, name) for name in Difference.__slots__}

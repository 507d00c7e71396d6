"""How close is close enough: the bound on the error of each element of an output. The one place that says so.

A result is rounded once to the output's type, and either neighbour of the exact value is right: 1 ULP. Before that, it
is computed in the accumulation type, float32 for half and bfloat16 as PyTorch documents it; what n roundings there may
amount to grows with the square root of n, in units of the magnitude of what is summed:

    |actual - exact| <= ulp(exact) + ROUNDINGS * sqrt(n) * u * (|exact| + terms + usual)

`u` is the unit roundoff of the accumulation type, `terms` how strongly the exact result answers to relative changes of
the inputs (the root of the sum of squares of the terms where the result is a sum) and `n` how many numbers one element
is made of; all are measured on the reference, see sensitivity.py. `usual` is the median of |exact| + terms over the
output, for sums of some elements that are subtracted from others; 0 for elementwise functions. Elements that are wrong
by `terms = 0, n = 1` are rare, and so the measurement is made only where one is found.

A pair under `tolerance:` of a schema replaces this for one dtype: where a formula has constants that cancel, ex.
1 + erf(x), or intermediate results are kept in half.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from diopi_conformance.cases.plan import Case, Function
from diopi_conformance.values.elements import Array
from diopigen.vocabulary.checks import CHECK
from diopigen.vocabulary.dtype import DType, Kind
from diopigen.vocabulary.loaded import DTYPE, DTYPES

ROUNDINGS = 8.0  # of one term: a transcendental function of a device may be wrong by 4 ULP


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Of a type: what its numbers and what sums in it are good for."""

    digits: int  # bits of the significand, the hidden one too
    smallest: int  # exponent of the smallest step that counts, e.g. -24 for 2 ** -24
    largest: float
    accumulation: float  # unit roundoff of the type that sums are computed in


def _precision_of(dtype: DType) -> Precision:
    """Small numbers of half are common, and computed in float32: they count. Those of wider types may be flushed."""
    subnormal = dtype.digits - 1 if dtype.exponent < _SINGLE.exponent else 0
    return Precision(
        digits=dtype.digits,
        smallest=dtype.least_exponent - subnormal,
        largest=dtype.largest,
        accumulation=2.0 ** -max(dtype.digits, _SINGLE.digits),
    )


_SINGLE = DTYPE["f32"]
# Of floats; complex numbers are judged by their parts.
PRECISION = {dtype.name: _precision_of(dtype) for dtype in DTYPES.types if dtype.kind is Kind.FLOAT}


def precision_of(dtype: str) -> Precision | None:
    """Of a float, or of the parts of a complex number; None for any other type."""
    return PRECISION.get(DTYPES.real_of(DTYPE[dtype]).name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What one output is made of, measured on the reference."""

    magnitude: Array  # of the terms of each element, in the output's shape
    length: int  # how many numbers of the inputs an element depends on


Measure = Callable[[], Terms]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """Of one output of one case."""

    dtype: str  # the coarsest on the way, e.g. "f32" of a float64 that the vendor casts
    exact: bool
    pair: tuple[float, float] | None = None  # relative, absolute: the schema's own
    unit: float = 0.0  # roundoff of the accumulation type
    alone: bool = False  # whether each element is computed from its own position only

    def near(self, expected: Array) -> Array:
        """The bound of elements that are made of one term each."""
        return replace(self, alone=True)._bound(expected, np.zeros(expected.shape), 1)

    def wide(self, expected: Array, terms: Terms) -> Array:
        """The bound where `terms` are known; never below near()."""
        return self._bound(expected, terms.magnitude, terms.length)

    @property
    def measured(self) -> bool:
        """Whether to know the terms can make a difference."""
        return not self.exact and self.pair is None

    def _bound(self, expected: Array, magnitude: Array, length: int) -> Array:
        size = np.where(np.isfinite(expected), np.abs(expected), 0.0)
        if self.exact:
            return np.zeros(size.shape)
        if self.pair is not None:
            return np.asarray(self.pair[1] + self.pair[0] * size)
        scale = size + magnitude
        usual = 0.0 if self.alone or not scale.size else float(np.median(scale))
        return np.asarray(ulp(size, self.dtype) + ROUNDINGS * np.sqrt(length) * self.unit * (scale + usual))


def coarse(magnitude: Array) -> Array:
    """`magnitude` rounded up to 8 bits: more of it means nothing, and few bits take little room where it is stored."""
    fraction, exponent = np.frexp(magnitude)
    return np.asarray(np.ldexp(np.ceil(fraction * 256) / 256, exponent))


def ulp(values: Array, dtype: str) -> Array:
    """The distance of the type's numbers at `values`; 0 for types that are no floats."""
    precision = precision_of(dtype)
    if precision is None:
        return np.zeros(np.shape(values))
    size = np.where(np.isfinite(values), np.abs(values), 0.0)
    _, exponent = np.frexp(np.clip(size, 2.0**precision.smallest, precision.largest))
    return np.asarray(np.exp2(np.maximum(exponent - precision.digits, precision.smallest).astype(np.float64)))


def tolerance(function: Function, case: Case, dtype: str) -> Tolerance:
    """Of an output of `dtype`: the coarsest type that it passes through decides.

    Gradients are sums even where the forward only copies. Arguments of type float have made numbers of float32 before.
    """
    exact = CHECK[function.check].exact and function.form != "backward"
    narrow = any(p.passing == "float" for p in function.params)
    return tolerance_of(
        sorted(_computed(function, case, dtype), key=_coarseness),
        exact=exact,
        pairs=function.tolerance,
        narrow=narrow,
        elementwise=function.elementwise,
    )


def tolerance_of(
    passed: Sequence[str],
    *,
    exact: bool,
    pairs: Mapping[str, tuple[float, float]],
    elementwise: bool,
    narrow: bool = False,
) -> Tolerance:
    """Of a result that passes through the dtypes `passed`, the coarsest last.

    `pairs` are a schema's own relative and absolute errors by dtype; `narrow` says that float32 numbers go in besides.
    """
    if exact or precision_of(passed[-1]) is None:
        return Tolerance(dtype=passed[-1], exact=True)
    own = [pairs[d] for d in passed if d in pairs]
    if own:
        relative, absolute = (max(pair) for pair in zip(*own, strict=True))
        return Tolerance(dtype=passed[-1], exact=False, pair=(relative, absolute))
    judged = (precision_of(d) for d in (_SINGLE.name if narrow else passed[-1], passed[-1]))
    unit = max(precision.accumulation for precision in judged if precision is not None)
    return Tolerance(dtype=passed[-1], exact=False, unit=unit, alone=elementwise)


def _computed(function: Function, case: Case, dtype: str) -> set[str]:
    """The dtypes that a result of `dtype` passes through."""
    params = (p for p in function.params if case.dtypes.get(p.name) == dtype)
    return {dtype, *(p.computed(dtype) for p in params)}


def _coarseness(dtype: str) -> int:
    """More for fewer digits; types without any come first."""
    precision = precision_of(dtype)
    return -precision.digits if precision is not None else -100

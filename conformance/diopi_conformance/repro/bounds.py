"""What the elements of a float output should be, and how far they may be away."""

import numpy as np

from diopi_conformance.judgement import compare
from diopi_conformance.judgement.closeness import Output
from diopi_conformance.judgement.tolerance import PRECISION
from diopi_conformance.prepare import Prepared
from diopi_conformance.values.elements import Array, rounded


def targets(prepared: Prepared, label: str, dtype: str, expected: Array) -> tuple[Array, Array]:
    """The values that are aimed at and their absolute bounds, both in the output's shape.

    Exact results are aimed at, not rounded ones, where there is a tolerance at all. What the type cannot hold is
    infinite; where it may just not be held, the bound is.
    """
    output = Output(label=label, dtype=dtype, actual=expected, exact=expected)
    bounds = compare.bounds(prepared, output)
    held = rounded(expected, dtype)
    values = np.where((bounds == 0) | ~np.isfinite(held), held, expected)
    if (precision := PRECISION.get(dtype)) is None:
        return values, bounds
    with np.errstate(invalid="ignore"):
        near = np.isfinite(held) & (np.abs(held) + bounds > precision.largest)
    return values, np.where(near, np.inf, bounds)

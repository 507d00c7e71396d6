"""Values that a case wants in the place of the usual ones: not finite, tiny, large, or at the ends of a type."""

import numpy as np

from diopi_conformance.values.elements import Array, is_float, storage_dtype
from diopigen.vocabulary.dtype import Kind
from diopigen.vocabulary.loaded import DTYPE

_SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0)


def filled(fill: str, values: Array, dtype: str, rng: np.random.Generator) -> Array:
    """`values`, drawn as usual, as `fill` wants them; types that it says nothing of keep theirs."""
    match fill:
        case "special" if is_float(dtype):
            return np.where(rng.random(values.shape) < 0.3, rng.choice(_SPECIAL, size=values.shape), values)
        case "large" if is_float(dtype):
            return values * 100
        case "denormal" if is_float(dtype):
            tiny = rng.uniform(-1, 1, size=values.shape) * 2.0 ** DTYPE[dtype].least_exponent
            return np.where(rng.random(values.shape) < 0.5, tiny, values)
        case "extremes" if is_float(dtype):
            ends = np.array([-DTYPE[dtype].largest, DTYPE[dtype].largest])
            return np.where(rng.random(values.shape) < 0.3, rng.choice(ends, size=values.shape), values)
        case "extremes" if DTYPE[dtype].kind is not Kind.BOOL and np.issubdtype(storage_dtype(dtype), np.integer):
            info = np.iinfo(storage_dtype(dtype))
            ends = np.array([info.min, info.max], dtype=info.dtype)
            return np.where(
                rng.random(values.shape) < 0.5, rng.choice(ends, size=values.shape), values.astype(info.dtype)
            )
        case _:
            return values

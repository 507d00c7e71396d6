"""Values that a case wants in the place of the usual ones: not finite, tiny, large, or at the ends of a type."""

from typing import Any

import numpy as np

from diopi_conformance.values.elements import Array, is_float, storage_dtype

_SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0)
_BFLOAT16_MAX = 255 * 2.0**120  # eight bits of precision under the exponent of float32


def filled(fill: str, values: Array, dtype: str, rng: np.random.Generator) -> Array:
    """`values`, drawn as usual, as `fill` wants them; types that it says nothing of keep theirs."""
    match fill:
        case "special" if is_float(dtype):
            return np.where(rng.random(values.shape) < 0.3, rng.choice(_SPECIAL, size=values.shape), values)
        case "large" if is_float(dtype):
            return values * 100
        case "denormal" if is_float(dtype):
            tiny = rng.uniform(-1, 1, size=values.shape) * smallest_normal(dtype)
            return np.where(rng.random(values.shape) < 0.5, tiny, values)
        case "extremes" if is_float(dtype):
            ends = np.array([-highest(dtype), highest(dtype)])
            return np.where(rng.random(values.shape) < 0.3, rng.choice(ends, size=values.shape), values)
        case "extremes" if dtype != "bool" and np.issubdtype(storage_dtype(dtype), np.integer):
            info = np.iinfo(storage_dtype(dtype))
            ends = np.array([info.min, info.max], dtype=info.dtype)
            return np.where(
                rng.random(values.shape) < 0.5, rng.choice(ends, size=values.shape), values.astype(info.dtype)
            )
        case _:
            return values


def smallest_normal(dtype: str) -> float:
    """The smallest positive number that a float type holds with full precision; bfloat16 has the range of float32."""
    return float(np.finfo(_numpy(dtype)).tiny)


def highest(dtype: str) -> float:
    """The highest finite number of a float type."""
    return _BFLOAT16_MAX if dtype == "bf16" else float(np.finfo(_numpy(dtype)).max)


def _numpy(dtype: str) -> Any:
    return np.float32 if dtype == "bf16" else storage_dtype(dtype)

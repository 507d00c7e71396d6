"""Element types as numpy sees them: raw storage words on one side, exact values on the other.

Values are float64 for floats, complex128 for complex types, and the type itself for integers and bool. Floats that
numpy does not have, such as bfloat16, are stored as words and rounded here to nearest, ties to even.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopigen.vocabulary.dtype import DType, Kind
from diopigen.vocabulary.loaded import DTYPE, DTYPES

Array = NDArray[Any]

_STORAGE = {dtype.name: np.dtype(dtype.numpy) for dtype in DTYPES.types if dtype.numpy is not None}
COMPLEX = tuple(dtype.name for dtype in DTYPES.types if dtype.kind is Kind.COMPLEX and dtype.numpy is not None)


def storage_dtype(name: str) -> np.dtype[Any]:
    """The numpy type of one stored element; KeyError where numpy has none."""
    return _STORAGE[name]


def rows_of_bytes(words: Array) -> Array:
    """A row for each element, to compare: as numbers, not all are equal to themselves."""
    return np.ascontiguousarray(words).view(np.uint8).reshape(words.size, words.itemsize)


def is_float(name: str) -> bool:
    return DTYPE[name].kind is Kind.FLOAT


def encode(values: Array, name: str) -> Array:
    """`values` rounded to the type, as storage words; any shape."""
    if _in_words(name):
        return _words(np.asarray(values, dtype=np.float64), DTYPE[name])
    if _is_bool(name):
        return np.asarray(np.asarray(values) != 0, dtype=_STORAGE[name])
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.asarray(values).astype(_STORAGE[name]))


def decode(words: Array, name: str) -> Array:
    """The exact values of storage words."""
    if _in_words(name):
        return np.asarray(_numbers(name)[words])
    if _is_bool(name):
        return np.asarray(words != 0)
    if is_float(name):
        return words.astype(np.float64)
    return words.astype(np.complex128) if name in COMPLEX else words


def rounded(values: Array, name: str) -> Array:
    """`values` as the type can hold them."""
    return decode(encode(values, name), name)


def holds(name: str, values: Array) -> bool:
    """Whether the type can stand for `values`: whole numbers stay as they are, fractions stay finite.

    All fits into bool, which is cast to for the truth of values alone.
    """
    if _is_bool(name):
        return True
    found, finite = rounded(values, name), np.isfinite(values)
    if np.issubdtype(values.dtype, np.inexact) and (is_float(name) or name in COMPLEX):
        return bool(np.array_equal(np.isfinite(found), finite))
    return bool(np.array_equal(found[finite], values[finite]))


def _is_bool(name: str) -> bool:
    return DTYPE[name].kind is Kind.BOOL


def _in_words(name: str) -> bool:
    return is_float(name) and _STORAGE[name].kind == "u"


def _words(exact: Array, dtype: DType) -> Array:
    """Sign, exponent and fraction of the nearest numbers of a float type; what is too large becomes infinite."""
    size, fraction = np.abs(exact), dtype.digits - 1
    size = np.where(np.isfinite(size), size, 2 * dtype.largest)
    lowest = dtype.least_exponent - fraction  # exponent of the smallest step
    step = np.maximum(np.frexp(np.maximum(size, 2.0**lowest))[1] - dtype.digits, lowest)
    infinite = (2**dtype.exponent - 1) << fraction
    # A significand that is rounded up to the next power of two carries into the exponent.
    words = (step.astype(np.int64) - lowest << fraction) + np.rint(np.ldexp(size, -step)).astype(np.int64)
    words = np.minimum(words, infinite) | np.signbit(exact).astype(np.int64) << 8 * dtype.size - 1
    return np.asarray(np.where(np.isnan(exact), infinite | 1 << fraction - 1, words).astype(_STORAGE[dtype.name]))


@cache
def _numbers(name: str) -> Array:
    """The number that each word of a float type stands for."""
    dtype = DTYPE[name]
    words, fraction = np.arange(1 << 8 * dtype.size), dtype.digits - 1
    exponent, significand = words >> fraction & 2**dtype.exponent - 1, words & (1 << fraction) - 1
    normal = (exponent > 0).astype(np.int64)
    size = np.ldexp(
        (significand + (normal << fraction)).astype(np.float64), exponent - normal + dtype.least_exponent - fraction
    )
    size = np.where(exponent < 2**dtype.exponent - 1, size, np.where(significand == 0, np.inf, np.nan))
    return np.asarray(np.where(words >> 8 * dtype.size - 1, -size, size))

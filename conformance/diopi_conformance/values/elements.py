"""Element types as numpy sees them: raw storage words on one side, exact values on the other.

Values are float64 for floats, complex128 for complex types, and the type itself for integers and bool. numpy has no
bfloat16, so its storage is uint16 words, rounded here to nearest, ties to even.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_STORAGE = {
    "i8": np.int8,
    "u8": np.uint8,
    "i16": np.int16,
    "u16": np.uint16,
    "i32": np.int32,
    "u32": np.uint32,
    "i64": np.int64,
    "u64": np.uint64,
    "f16": np.float16,
    "bf16": np.uint16,
    "f32": np.float32,
    "f64": np.float64,
    "bool": np.uint8,
    "c64": np.complex64,
    "c128": np.complex128,
}

FLOATS = ("f16", "bf16", "f32", "f64")
COMPLEX = ("c64", "c128")


def storage_dtype(name: str) -> np.dtype[Any]:
    """The numpy type of one stored element; KeyError where numpy has none."""
    return np.dtype(_STORAGE[name])


def rows_of_bytes(words: Array) -> Array:
    """A row for each element, to compare: as numbers, not all are equal to themselves."""
    return np.ascontiguousarray(words).view(np.uint8).reshape(words.size, words.itemsize)


def is_float(name: str) -> bool:
    return name in FLOATS


def encode(values: Array, name: str) -> Array:
    """`values` rounded to the type, as storage words; any shape."""
    if name == "bf16":
        return _bfloat16_words(values)
    if name == "bool":
        return np.asarray(np.asarray(values) != 0, dtype=np.uint8)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.asarray(values).astype(_STORAGE[name]))


def decode(words: Array, name: str) -> Array:
    """The exact values of storage words."""
    if name == "bf16":
        wide = np.left_shift(words.astype(np.uint32), 16, dtype=np.uint32)
        return np.asarray(np.asarray(wide).view(np.float32).astype(np.float64))
    if name == "bool":
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
    if name == "bool":
        return True
    found, finite = rounded(values, name), np.isfinite(values)
    if np.issubdtype(values.dtype, np.inexact) and (is_float(name) or name in COMPLEX):
        return bool(np.array_equal(np.isfinite(found), finite))
    return bool(np.array_equal(found[finite], values[finite]))


def _bfloat16_words(values: Array) -> Array:
    """By way of float32 rounded to odd, so that the two roundings give what one would."""
    exact = np.asarray(values, dtype=np.float64)
    with np.errstate(over="ignore"):
        near = np.asarray(exact.astype(np.float32))
    bits = near.view(np.uint32).astype(np.uint64).reshape(near.shape)
    back = near.astype(np.float64)
    beyond = np.abs(back) > np.abs(exact)
    finite = np.isfinite(near)
    bits = np.where(finite & beyond, bits - 1, bits)
    bits = np.where(finite & (back != exact), bits | 1, bits)
    words = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.asarray(np.where(np.isnan(exact), 0x7FC0, words).astype(np.uint16))

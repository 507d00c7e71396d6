"""Elements as bytes: numbers as the lab's vendor writes them."""

import struct
from functools import lru_cache

SIZES = {
    "int8": 1,
    "uint8": 1,
    "bool": 1,
    "int16": 2,
    "uint16": 2,
    "float16": 2,
    "bfloat16": 2,
    "int32": 4,
    "uint32": 4,
    "float32": 4,
    "tfloat32": 4,
    "complex32": 4,
    "int64": 8,
    "uint64": 8,
    "float64": 8,
    "complex64": 8,
    "complex128": 16,
}

_FLOATS = {"float16": "<e", "float32": "<f", "tfloat32": "<f", "float64": "<d"}
_PARTS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}


@lru_cache(100_000)
def encoded(dtype: str, value: complex) -> bytes:
    """Integers wrap, floats lose digits, complex numbers lose their imaginary part, what is not zero is true."""
    if dtype in _PARTS:
        return encoded(_PARTS[dtype], complex(value.real)) + encoded(_PARTS[dtype], complex(value.imag))
    if dtype == "bool":
        return bytes([value != 0])
    if dtype in _FLOATS:
        return struct.pack(_FLOATS[dtype], value.real)
    if dtype == "bfloat16":
        return struct.pack("<f", value.real)[2:]
    size = SIZES[dtype]
    return (int(value.real) % (1 << 8 * size)).to_bytes(size, "little")


@lru_cache(100_000)
def decoded(dtype: str, data: bytes) -> complex:
    if dtype in _PARTS:
        half = len(data) // 2
        return complex(decoded(_PARTS[dtype], data[:half]).real, decoded(_PARTS[dtype], data[half:]).real)
    if dtype in _FLOATS:
        return complex(struct.unpack(_FLOATS[dtype], data)[0])
    if dtype == "bfloat16":
        return complex(struct.unpack("<f", bytes(2) + data)[0])
    return complex(int.from_bytes(data, "little", signed=dtype.startswith("int")))

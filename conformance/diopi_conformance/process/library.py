"""The C side as ctypes sees it: the test runtime's functions and the contract's structs."""

import ctypes
from ctypes import POINTER, c_char, c_char_p, c_double, c_int, c_int32, c_int64, c_uint64, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

_LONGEST_TEXT = 2000  # bytes


class LibraryError(Exception):
    """A library cannot be loaded or used; the text says why."""


class Size(ctypes.Structure):
    """diopiSize_t."""

    _fields_ = (("data", POINTER(c_int64)), ("len", c_int64))


class _Number(ctypes.Union):
    _fields_ = (("fval", c_double), ("ival", c_int64))


class Scalar(ctypes.Structure):
    """diopiScalar_t."""

    _anonymous_ = ("number",)
    _fields_ = (("stype", c_int32), ("number", _Number))


_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "standalone_last_error": (c_char_p, ()),
    "standalone_load": (c_int, (c_char_p,)),
    "standalone_symbol": (c_void_p, (c_char_p,)),
    "standalone_context_create": (c_void_p, ()),
    "standalone_context_destroy": (c_int, (c_void_p,)),
    "standalone_context_synchronize": (c_int, (c_void_p,)),
    "standalone_context_reset": (c_int, (c_void_p,)),
    "standalone_context_check_guards": (c_int, (c_void_p,)),
    "standalone_tensor_create": (
        c_void_p,
        (POINTER(c_int64), POINTER(c_int64), c_int64, c_int64, c_int64, c_int, c_int),
    ),
    "standalone_tensor_destroy": (c_int, (c_void_p,)),
    "standalone_tensor_write": (c_int, (c_void_p, c_void_p, c_uint64)),
    "standalone_tensor_read": (c_int, (c_void_p, c_void_p, c_uint64)),
    "standalone_tensor_check_guards": (c_int, (c_void_p,)),
    "standalone_set_fresh": (c_int, (c_int,)),
    "standalone_generator_create": (c_void_p, (c_uint64,)),
    "standalone_generator_destroy": (c_int, (c_void_p,)),
    "diopiGeneratorGetSeedAndOffset": (c_int, (c_void_p, POINTER(c_uint64), POINTER(c_uint64))),
    "diopiGeneratorSetSeedAndOffset": (c_int, (c_void_p, c_uint64, c_uint64)),
    "diopiGetTensorShape": (c_int, (c_void_p, POINTER(Size))),
    "diopiGetTensorStride": (c_int, (c_void_p, POINTER(Size))),
    "diopiGetTensorDtype": (c_int, (c_void_p, POINTER(c_int))),
    "diopiGetTensorStorageOffset": (c_int, (c_void_p, POINTER(c_int64))),
    "diopiGetTensorStorageNbytes": (c_int, (c_void_p, POINTER(c_uint64))),
}


class Library:
    """The test runtime with one vendor's library in it."""

    def __init__(self, runtime: Path, vendor: Path) -> None:
        """Raises LibraryError where either cannot be loaded or their headers disagree."""
        try:
            self._runtime = ctypes.CDLL(str(runtime), mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise LibraryError(f"the test runtime does not load: {error}") from None
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(self._runtime, name, None)
            if function is None:
                raise LibraryError(
                    f"{runtime} is not the test runtime of this version: it lacks '{name}'; build it again"
                )
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)
        self._used_memory = getattr(self._runtime, "standalone_device_memory", None)  # older runtimes have none
        if self.call("standalone_load", str(vendor).encode()) != 0:
            raise LibraryError(self.last_error())
        self._functions: dict[str, Any] = {}

    def call(self, name: str, *args: Any) -> Any:
        return getattr(self, name)(*args)

    def checked(self, name: str, *args: Any) -> None:
        """Call a function that gives 0 on success; raises LibraryError with the runtime's words."""
        if self.call(name, *args) != 0:
            raise LibraryError(self.last_error() or f"{name} failed")

    def created(self, name: str, *args: Any) -> int:
        """Call a function that gives a handle; raises LibraryError on null."""
        handle = self.call(name, *args)
        if not handle:
            raise LibraryError(self.last_error() or f"{name} gave nothing")
        return int(handle)

    def used_memory(self) -> int | None:
        """Bytes of the device that are in use, by whomever; None where nobody tells."""
        used = c_uint64()
        if self._used_memory is None or self._used_memory(ctypes.byref(used)) != 0:
            return None
        return used.value

    def last_error(self) -> str:
        return error_text(self.call("standalone_last_error"))

    def function(self, symbol: str) -> Any:
        """A C function of the vendor with an int as its result, or None."""
        if symbol not in self._functions:
            address = self.call("standalone_symbol", symbol.encode())
            self._functions[symbol] = ctypes.CFUNCTYPE(c_int)(address) if address else None
        return self._functions[symbol]


def error_text(text: bytes | None) -> str:
    """What a library says of a failure, in one line that a terminal can take; of a long text the beginning.

    e.g. "no kernel... (1048000 more bytes)"
    """
    if not text:
        return ""
    begin = text[:_LONGEST_TEXT].decode(errors="replace")
    line = "".join(c if c.isprintable() else " " if c.isspace() else ascii(c)[1:-1] for c in begin)
    return line if len(text) <= _LONGEST_TEXT else f"{line}... ({len(text) - _LONGEST_TEXT} more bytes)"


def int64_array(values: list[int]) -> Any:
    """A C array; at least one element long, since the address of nothing is no address."""
    return _array_type(c_int64, max(1, len(values)))(*values)


def room(count: int) -> Any:
    """Memory for `count` bytes that a C function writes; `raw` has them."""
    return _array_type(c_char, count)()


@cache
def _array_type(element: Any, length: int) -> Any:
    """Kept, for a type that nobody holds is made again each time, and is a cycle that stays until it is collected."""
    return element * length

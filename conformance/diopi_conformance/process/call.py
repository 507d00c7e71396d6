"""One call of the vendor's library: its arguments made, the function called, everything read back. Without torch."""

import ctypes
import os
import time
from ctypes import c_bool, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_uint64, c_void_p
from typing import Any

from diopi_conformance.process import wire
from diopi_conformance.process.leaks import LeakSanitizer
from diopi_conformance.process.library import Library, LibraryError, Scalar, Size, error_text, int64_array, room

_ON_DEVICE = 1
_FLOAT64 = 10
_INT64 = 6
_BOOL = 11

_TELLS_FORMAT = "diopiGetNativeMemoryFormat"

_PLAIN: dict[str, Any] = {
    "bool": c_bool,
    "count": c_int64,
    "double": c_double,
    "enum": c_int,
    "float": c_float,
    "int32": c_int32,
    "int64": c_int64,
}


class LibraryCall:
    """One call and everything that must live while it runs."""

    def __init__(
        self, library: Library, leaks: LeakSanitizer, context: int, request: dict[str, Any], blobs: list[bytes]
    ) -> None:
        self.library = library
        self.leaks = leaks
        self.context = context
        self.request = request
        self.keep: list[Any] = []
        self.generators: list[int] = []
        self.slots: list[c_void_p] = []
        self.host: list[Any] = []
        self.tensors: list[int] = []
        for facts, blob in zip(request["tensors"], blobs, strict=True):
            self.tensors.append(self._tensor(facts, blob))

    def _tensor(self, facts: dict[str, Any], blob: bytes) -> int:
        handle = self.library.created(
            "standalone_tensor_create",
            int64_array(facts["sizes"]),
            int64_array(facts["strides"]),
            len(facts["sizes"]),
            facts["offset"],
            facts["elements"],
            facts["dtype"],
            _ON_DEVICE,
        )
        if blob:
            self.library.checked("standalone_tensor_write", handle, blob, len(blob))
        return handle

    def argument(self, arg: dict[str, Any]) -> Any:
        """The ctypes value of one argument."""
        value, passing = arg["value"], arg["pass"]
        match passing:
            case "tensor":
                return c_void_p(None if value is None else self.tensors[value])
            case "tensors":
                handles = [None if v is None else self.tensors[v] for v in value]
                return self._kept((c_void_p * max(1, len(handles)))(*handles))
            case "tensor*":
                return self._slots(arg.get("count", 1))
            case "scalar" | "scalar_value":
                return self._scalar(value, by_pointer=passing == "scalar")
            case "size" | "size*":
                return self._size(value, by_pointer=passing == "size*")
            case "str":
                return c_char_p(None if value is None else value.encode())
            case "generator":
                return self._generator(value)
            case "generator*":
                return self._kept((c_void_p * max(1, len(value)))(*map(self._generator, value)))
            case "bool*" | "double*" | "float*" | "int64*":
                return self._pointer(_PLAIN[passing[:-1]], value, host=arg["host"])
            case "native_format":
                return self._native_format(self.tensors[value])
            case _:
                return _PLAIN[passing](value)

    def _slots(self, count: int) -> Any:
        """Room for the handles that the function makes, next to each other."""
        room = (c_void_p * count)()
        self.slots += [c_void_p.from_buffer(room, i * ctypes.sizeof(c_void_p)) for i in range(count)]
        return ctypes.byref(room)

    def _native_format(self, tensor: int) -> Any:
        """The vendor's number of the memory format that a tensor has."""
        number = c_int64()
        status = self.library.function(_TELLS_FORMAT)(c_void_p(self.context), c_void_p(tensor), ctypes.byref(number))
        if status != 0:
            raise LibraryError(f"{_TELLS_FORMAT} gives status {status}, so that no format is known to cast to")
        return number

    def _kept(self, value: Any) -> Any:
        self.keep.append(value)
        return value

    def _scalar(self, value: Any, by_pointer: bool) -> Any:
        if value is None:
            return c_void_p(None)
        if isinstance(value, float):
            scalar = Scalar(stype=_FLOAT64, fval=value)
        else:
            scalar = Scalar(stype=_BOOL if isinstance(value, bool) else _INT64, ival=int(value))
        return ctypes.byref(self._kept(scalar)) if by_pointer else scalar

    def _size(self, value: list[int] | None, by_pointer: bool) -> Any:
        if value is None:
            return c_void_p(None) if by_pointer else Size(None, 0)
        size = Size(self._kept(int64_array(value)), len(value))
        return ctypes.byref(self._kept(size)) if by_pointer else size

    def _generator(self, state: int | list[int] | None) -> Any:
        """From a seed, or from a seed and how many numbers have been drawn."""
        if state is None:
            return c_void_p(None)
        seed, drawn = state if isinstance(state, list) else (state, 0)
        self.generators.append(self.library.created("standalone_generator_create", c_uint64(seed)))
        if drawn:
            place = (self.generators[-1], c_uint64(seed), c_uint64(drawn))
            self.library.checked("diopiGeneratorSetSeedAndOffset", *place)
        return c_void_p(self.generators[-1])

    def states(self) -> list[list[int]]:
        """Seed and offset of each generator, as the function left them."""
        found: list[list[int]] = []
        for generator in self.generators:
            seed, drawn = c_uint64(), c_uint64()
            self.library.checked("diopiGeneratorGetSeedAndOffset", generator, ctypes.byref(seed), ctypes.byref(drawn))
            found.append([seed.value, drawn.value])
        return found

    def _pointer(self, kind: Any, value: Any, host: bool) -> Any:
        if host:
            cell = kind.from_buffer(bytearray([wire.UNWRITTEN] * ctypes.sizeof(kind)))
            self.host.append(cell)
            return ctypes.byref(cell)
        return c_void_p(None) if value is None else ctypes.byref(self._kept(kind(value)))

    def run(self) -> tuple[dict[str, Any], list[bytes]]:
        """Call the function, wait for the device, read every storage."""
        function = self.library.function(self.request["symbol"])
        asks = any(arg["pass"] == "native_format" for arg in self.request["args"])
        if function is None or (asks and self.library.function(_TELLS_FORMAT) is None):
            return {"outcome": "missing"}, []
        arguments = [c_void_p(self.context), *map(self.argument, self.request["args"])]
        process = os.getpid()
        start = time.perf_counter()
        with self.leaks.watching():
            status = function(*arguments)
        if os.getpid() != process:
            os._exit(0)  # a copy of the process that the function made: what is asked and answered is not for it
        synchronized = self.library.call("standalone_context_synchronize", self.context) == 0
        head: dict[str, Any] = {
            "outcome": "returned",
            "status": status,
            "synchronized": synchronized,
            "error": self._error(status, synchronized),
            "seconds": time.perf_counter() - start,
        }
        if not synchronized:
            return head, []
        damaged = [i for i, t in enumerate(self.tensors) if self._damaged(t)]
        head["damaged"] = damaged
        head["scratch_damaged"] = self.library.call("standalone_context_check_guards", self.context) != 0
        head["host"] = [ctypes.string_at(ctypes.byref(c), ctypes.sizeof(c)).hex() for c in self.host]
        blobs = [self._bytes(t, f["bytes"]) for t, f in zip(self.tensors, self.request["tensors"], strict=True)]
        made = [self._described(slot) if slot.value else None for slot in self.slots]
        head["new"] = made
        for slot, facts in zip(self.slots, made, strict=True):
            blobs.append(self._bytes(slot.value or 0, facts["bytes"]) if facts else b"")
        return head, blobs

    def _error(self, status: int, synchronized: bool) -> str:
        if status == 0 and synchronized:
            return ""
        function = self.library.function("diopiGetLastErrorString")
        if function is None:
            return self.library.last_error()
        function.restype = c_char_p
        return error_text(function()) or self.library.last_error()

    def _damaged(self, tensor: int) -> bool:
        return bool(self.library.call("standalone_tensor_check_guards", tensor) != 0)

    def _bytes(self, tensor: int, count: int) -> bytes:
        if count == 0:
            return b""
        buffer = room(count)
        self.library.checked("standalone_tensor_read", tensor, buffer, count)
        written: bytes = buffer.raw
        return written

    def _described(self, slot: c_void_p) -> dict[str, Any]:
        sizes, strides, dtype = Size(), Size(), c_int()
        offset, count = c_int64(), c_uint64()
        self.library.checked("diopiGetTensorShape", slot, ctypes.byref(sizes))
        self.library.checked("diopiGetTensorStride", slot, ctypes.byref(strides))
        self.library.checked("diopiGetTensorDtype", slot, ctypes.byref(dtype))
        self.library.checked("diopiGetTensorStorageOffset", slot, ctypes.byref(offset))
        self.library.checked("diopiGetTensorStorageNbytes", slot, ctypes.byref(count))
        return {
            "sizes": sizes.data[: sizes.len],
            "strides": strides.data[: strides.len],
            "dtype": dtype.value,
            "offset": offset.value,
            "bytes": count.value,
        }

    def close(self) -> None:
        """Give every handle back; what fails here has been reported where it arose."""
        for generator in self.generators:
            self.library.call("standalone_generator_destroy", generator)
        for tensor in self.tensors:
            self.library.call("standalone_tensor_destroy", tensor)
        self.library.call("standalone_context_reset", self.context)

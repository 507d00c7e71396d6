"""Calls functions of one vendor's library in the test runtime, and writes down what reached it and what came back.

    python -m tests.e2e.vendor_calls LIBDIOPIRT LIBDIOPI_IMPL ANSWERS < calls.json

A call is [symbol, argument...]; an argument is a number, or a tensor {"dtype", "sizes", "strides"} whose elements are
0, -1, 2, -3, ... in the order of its indices. ANSWERS gets [status, what the vendor wrote down, the elements of the
first tensor] of each.
"""

import ctypes
import itertools
import json
import sys
from pathlib import Path
from typing import Any

from diopi_conformance.process.library import Library, Scalar, int64_array

DTYPES = {"float32": (9, ctypes.c_float), "float64": (10, ctypes.c_double)}
_DEVICE = 1
_INT64 = 6


class Tensor:
    """A tensor of the runtime with its elements in order."""

    def __init__(self, library: Library, dtype: str, sizes: list[int], strides: list[int]) -> None:
        self._library = library
        number, self._element = DTYPES[dtype]
        indices = itertools.product(*map(range, sizes))
        self._places = [sum(i * s for i, s in zip(index, strides, strict=True)) for index in indices]
        self._room = max(self._places) + 1
        create = (int64_array(sizes), int64_array(strides), len(sizes), 0, self._room, number, _DEVICE)
        self.handle = ctypes.c_void_p(library.created("standalone_tensor_create", *create))
        memory = (self._element * self._room)()
        for order, place in enumerate(self._places):
            memory[place] = order * (-1) ** order
        library.checked("standalone_tensor_write", self.handle, memory, ctypes.sizeof(memory))

    def elements(self) -> list[float]:
        memory = (self._element * self._room)()
        self._library.checked("standalone_tensor_read", self.handle, memory, ctypes.sizeof(memory))
        return [memory[place] for place in self._places]


def _argument(library: Library, value: Any) -> Any:
    if isinstance(value, dict):
        return Tensor(library, **value)
    scalar = Scalar(stype=_INT64)
    scalar.ival = value
    return scalar


def answers(library: Library, calls: list[list[Any]]) -> list[tuple[int, str, list[float]]]:
    """What each call gave."""
    record = ctypes.CFUNCTYPE(ctypes.c_char_p)(library.call("standalone_symbol", b"diopiRecord"))
    context = library.created("standalone_context_create")
    found = []
    seen = 0
    for symbol, *values in calls:
        arguments = [_argument(library, value) for value in values]
        passed = [a.handle if isinstance(a, Tensor) else ctypes.byref(a) for a in arguments]
        status = library.function(symbol)(ctypes.c_void_p(context), *passed)
        text = (record() or b"").decode()
        tensor = next(a for a in arguments if isinstance(a, Tensor))
        found.append((status, text[seen:], tensor.elements()))
        seen = len(text)
    return found


if __name__ == "__main__":
    opened = Library(Path(sys.argv[1]), Path(sys.argv[2]))
    result = json.dumps(answers(opened, json.load(sys.stdin)))
    Path(sys.argv[3]).write_text(result, encoding="utf-8")

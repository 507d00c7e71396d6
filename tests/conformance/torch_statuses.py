"""Calls functions of the library that is named in ways that fail, and prints the statuses and texts as JSON.

A process of its own: the libraries are opened with global symbols. Arguments: libdiopirt.so, libdiopi_impl.so.
"""

import json
import sys
from ctypes import c_bool, c_char_p, c_double, c_int, c_int64
from pathlib import Path
from typing import Any

import numpy as np
from attention_draws import Device


def answer(device: Device, symbol: str, *args: Any) -> list[Any]:
    """The status of a call, and what the library says of it."""
    function = device.library.function(symbol)
    function.restype = c_int
    status = function(device.context, *args)
    text = device.library.function("diopiGetLastErrorString")
    text.restype = c_char_p
    return [status, text().decode()]


def drawn(device: Device, seed: int) -> list[list[float]]:
    """Two draws in a row from one generator."""
    generator = device.generator(seed)
    found = []
    for _ in range(2):
        values = np.zeros(4, np.float32)
        handle = device.tensor(values)
        device.run("diopiUniformInp", handle, c_double(0), c_double(1), generator)
        found.append(device.values(handle, values).tolist())
    return found


def main() -> None:
    device = Device(Path(sys.argv[1]), Path(sys.argv[2]))
    a, b = (device.tensor(np.ones((2, 3), np.float32)), device.tensor(np.ones((3, 3), np.float32)))
    square = device.tensor(np.eye(2, dtype=np.float16))
    small, info = device.tensor(np.zeros((2, 2), np.float32)), device.tensor(np.zeros((), np.int64))
    rows = (device.tensor(np.zeros(1, np.int64)), c_int64(3), c_int64(-1), c_bool(False), c_bool(True))
    print(
        json.dumps(
            {
                "null": answer(device, "diopiRelu", a, None),
                "sizes": answer(device, "diopiMm", small, a, b),
                "dtype": answer(device, "diopiCholesky", square, info, square, c_bool(False), c_bool(False)),
                "refused": answer(device, "diopiEmbeddingBackward", b, a, *rows),
                "torch": answer(device, "diopiMm", small, a, a),
                "drawn": drawn(device, 5),
                "again": drawn(device, 5),
            }
        )
    )


if __name__ == "__main__":
    main()

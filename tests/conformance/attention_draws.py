"""Calls attention with dropout, and sampling, of the library that is named, and prints what came of it as JSON.

A process of its own: the libraries are opened with global symbols. Arguments: libdiopirt.so, libdiopi_impl.so.
"""

import json
import sys
from ctypes import byref, c_bool, c_char_p, c_float, c_int, c_int32, c_int64, c_uint64, c_void_p, create_string_buffer
from pathlib import Path
from typing import Any

import numpy as np

from diopi_conformance.process.library import Library, int64_array

_DTYPES = {"float16": 8, "float32": 9, "int64": 6, "bool": 11}
_ON_DEVICE = 1
_SIZES = (2, 16, 4, 8)
_KEPT = 0.6


class Device:
    """Tensors, generators and functions of one library."""

    def __init__(self, runtime: Path, vendor: Path) -> None:
        self.library = Library(runtime, vendor)
        self.context = c_void_p(self.library.call("standalone_context_create"))

    def tensor(self, values: Any) -> c_void_p:
        array = np.ascontiguousarray(values)
        strides = [s // array.itemsize for s in array.strides]
        dtype = _DTYPES[array.dtype.name]
        sizes = (int64_array(list(array.shape)), int64_array(strides), array.ndim, 0, array.size, dtype, _ON_DEVICE)
        handle = c_void_p(self.library.call("standalone_tensor_create", *sizes))
        self.library.checked("standalone_tensor_write", handle, array.tobytes(), array.nbytes)
        return handle

    def values(self, handle: c_void_p, like: Any) -> Any:
        buffer = create_string_buffer(like.nbytes)
        self.library.checked("standalone_tensor_read", handle, buffer, like.nbytes)
        return np.frombuffer(buffer.raw, like.dtype).reshape(like.shape)

    def generator(self, seed: int) -> c_void_p:
        return c_void_p(self.library.call("standalone_generator_create", c_uint64(seed)))

    def run(self, symbol: str, *args: Any) -> None:
        function = self.library.function(symbol)
        function.restype = c_int
        status = function(self.context, *args)
        assert status == 0, f"{symbol}: status {status}"


def dropped_attention(device: Device, gen: c_void_p) -> dict[str, Any]:
    """One forward and backward of flash attention on equal values, so that the output is the share that is kept.

    The output is linear in `v`: with the same elements dropped, out . grad and v . grad_v are the same number.
    """
    rng = np.random.default_rng(0)
    q, k, grad = (rng.standard_normal(_SIZES).astype(np.float16) for _ in range(3))
    ones = np.ones(_SIZES, np.float16)
    on_device = [device.tensor(a) for a in (q, k, ones)]
    out, lse = device.tensor(np.zeros_like(q)), device.tensor(np.zeros((2, 4, 16), np.float32))
    grads = [device.tensor(np.zeros_like(q)) for _ in range(3)]
    rest = (c_float(1 - _KEPT), c_float(0.35), c_bool(True), c_int32(-1), c_int32(-1))
    device.run("diopiFlashAttention", out, lse, gen, *on_device, None, *rest)
    device.run("diopiFlashAttentionBackward", *grads, device.tensor(grad), gen, *on_device, None, out, lse, *rest)
    found = device.values(out, q).astype(np.float64)
    return {
        "mean": float(found.mean()),
        "forward": float((found * grad).sum()),
        "backward": float(device.values(grads[2], q).astype(np.float64).sum()),
        "first": found[0, :, 0, 0].tolist(),
    }


def dropped_customized_attention(device: Device, gen: c_void_p) -> dict[str, float]:
    """As above, of the form whose gradient gets no generator but what the forward kept."""
    rng = np.random.default_rng(1)
    q, k, grad = (rng.standard_normal(_SIZES).astype(np.float16) for _ in range(3))
    on_device = [device.tensor(a) for a in (q, k, np.ones(_SIZES, np.float16))]
    out, kept = device.tensor(np.zeros_like(q)), [c_void_p() for _ in range(4)]
    grads = [device.tensor(np.zeros_like(q)) for _ in range(3)]
    rest = (c_float(1 - _KEPT), c_float(0.35), c_bool(True), c_int32(-1), c_int32(-1), c_int32(4), c_char_p(b"BSND"))
    device.run("diopiCustomizedFlashAttention", out, *(byref(t) for t in kept), gen, *on_device, None, None, *rest)
    back = (*grads, device.tensor(grad), *on_device, None, out, None, *kept)
    device.run("diopiCustomizedFlashAttentionBackward", *back, *rest)
    found = device.values(out, q).astype(np.float64)
    backward = device.values(grads[2], q).astype(np.float64).sum()
    return {"mean": float(found.mean()), "forward": float((found * grad).sum()), "backward": float(backward)}


def sampled(device: Device, symbol: str, limits: list[c_void_p], workspaces: int, gen: c_void_p) -> dict[str, Any]:
    """What two sequences get, the second of which is finished: the token, its end, and how long they are."""
    logits = np.log(np.array([[0.1, 0.5, 0.4, 1e-9], [0.25, 0.25, 0.25, 0.25]], np.float32))
    ids, finished, lengths = np.full((3, 2), -1, np.int64), np.array([False, True]), np.array([4, 7], np.int64)
    state = [device.tensor(a) for a in (ids, finished, lengths)]
    sizes = [c_int64(0) for _ in range(workspaces)]
    scratch = [arg for size in sizes for arg in (None, byref(size))]
    generators = (c_void_p * 2)(gen.value, gen.value)
    device.run(
        symbol,
        state[0],
        device.tensor(logits),
        *scratch,
        c_int64(0),
        device.tensor(np.array([1, 3], np.int64)),
        *state[1:],
        c_int64(2),
        c_int64(2),
        c_int64(4),
        *limits,
        None,
        None,
        None,
        generators,
    )
    found = [device.values(t, a).tolist() for t, a in zip(state, (ids, finished, lengths), strict=True)]
    return {"ids": found[0], "finished": found[1], "lengths": found[2]}


def main() -> None:
    device = Device(Path(sys.argv[1]), Path(sys.argv[2]))
    gen = device.generator(7)
    top_k, all_of_it = device.tensor(np.array([2, 2], np.int64)), device.tensor(np.ones(2, np.float32))
    nine_tenths = device.tensor(np.full(2, 0.85, np.float32))
    found = {
        "dropout": [dropped_attention(device, gen) for _ in range(2)],
        "customized": dropped_customized_attention(device, gen),
        "top_k": [sampled(device, "diopiTopKSampling", [top_k, all_of_it], 1, gen) for _ in range(200)],
        "top_p": [sampled(device, "diopiTopPSampling", [nine_tenths], 2, gen) for _ in range(200)],
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()

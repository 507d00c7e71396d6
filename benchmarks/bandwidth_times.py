"""Prints the GB/s of memory-bound operators on dipu and on CUDA, one line of JSON each; a process of its own."""

import json
import os
from collections.abc import Callable
from typing import Any

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

import torch
from torch.nn import functional as F

import torch_dipu

ELEMENTS = 1 << 26
ROUNDS = 5
CALLS = 10

# What is measured: how many tensors are read and written, and the operator on the read ones.
CASES: dict[str, tuple[int, Callable[..., torch.Tensor]]] = {
    "copy": (1, torch.clone),
    "neg": (1, torch.neg),
    "relu": (1, torch.relu),
    "mul by a number": (1, lambda a: a * 1.5),
    "add": (2, torch.add),
    "mul": (2, torch.mul),
    "addcmul": (3, torch.addcmul),
    "gelu": (1, F.gelu),
    "add of a row": (1, lambda a: a.view(-1, 1024) + a[:1024]),
}


def speed(call: Callable[[], Any], moved: int) -> float:
    """GB/s; events of the legacy default stream wait for all streams, and all wait for it."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(8_000_000)  # so that the GPU does not wait for the host
    start.record()
    for _ in range(CALLS):
        call()
    end.record()
    torch.cuda.synchronize()
    return moved * CALLS / start.elapsed_time(end) / 1e6


def main() -> None:
    """Measures every case in float32 and float16."""
    torch_dipu.start()
    with torch.no_grad():
        for dtype in (torch.float32, torch.float16):
            copied = 0.0
            for name, (reads, operator) in CASES.items():
                calls = {}
                for device in ("cuda", "dipu"):
                    given = [torch.ones(ELEMENTS, dtype=dtype, device=device) for _ in range(reads)]
                    calls[device] = lambda given=given, operator=operator: operator(*given)
                    calls[device]()
                moved = (reads + 1) * ELEMENTS * dtype.itemsize
                found: dict[str, list[float]] = {device: [] for device in calls}
                for _ in range(ROUNDS):
                    for device, call in calls.items():
                        found[device].append(speed(call, moved))
                copied = copied or sorted(found["cuda"])[ROUNDS // 2]
                print(json.dumps({"name": f"{name}, {str(dtype)[6:]}", "copy": copied, **found}), flush=True)


if __name__ == "__main__":
    main()

"""Prints the milliseconds of operators on dipu and on the CPU, one line of JSON each; runs in a process of its own."""

import json
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

ROUNDS = 9
# e.g. an operator of 2 us runs a few hundred times in a round
ROUND_SECONDS = 0.02

# What is measured: the tensors' shapes, and the operator on them.
CASES: dict[str, tuple[tuple[tuple[int, ...], ...], Callable[..., object]]] = {
    "add, 1M": (((1 << 20,), (1 << 20,)), torch.add),
    "add, 1k x 1k + 1k": (((1024, 1024), (1024,)), torch.add),
    "exp, 1M": (((1 << 20,),), torch.exp),
    "gelu, 1M": (((1 << 20,),), F.gelu),
    "copy of a transposed 1k x 1k": (((1024, 1024),), lambda a: a.t().contiguous()),
    "sum, 1M": (((1 << 20,),), torch.sum),
    "sum of rows, 1k x 1k": (((1024, 1024),), lambda a: a.sum(1)),
    "sum of columns, 1k x 1k": (((1024, 1024),), lambda a: a.sum(0)),
    "softmax, 1k x 1k": (((1024, 1024),), lambda a: a.softmax(-1)),
    "layer_norm, 1k x 1k": (((1024, 1024), (1024,), (1024,)), lambda a, w, b: F.layer_norm(a, (1024,), w, b)),
    "batch_norm, 16 x 32 x 32 x 32": (
        ((16, 32, 32, 32), (32,), (32,)),
        lambda a, w, b: F.batch_norm(a, None, None, w, b, training=True),
    ),
    "max_pool2d, 16 x 32 x 32 x 32": (((16, 32, 32, 32),), lambda a: F.max_pool2d(a, 3, 2, 1)),
    "mm, 256": (((256, 256), (256, 256)), torch.mm),
    "mm, 512": (((512, 512), (512, 512)), torch.mm),
    "bmm, 64 x 64": (((64, 64, 64), (64, 64, 64)), torch.bmm),
    "conv2d, 8 x 32 x 32 x 32, 3 x 3": (((8, 32, 32, 32), (32, 32, 3, 3)), lambda a, w: F.conv2d(a, w, padding=1)),
    "sort, 1k x 1k": (((1024, 1024),), torch.sort),
    "topk 10 of 1k x 1k": (((1024, 1024),), lambda a: a.topk(10)),
    "index_select, 1k of 10k x 256": (
        ((10_000, 256),),
        lambda a: a.index_select(0, torch.arange(0, 10_000, 10, device=a.device)),
    ),
}


def seconds(call: Callable[[], object], times: int) -> float:
    """Seconds of CPU that one call takes, the mean of `times`; both devices work on the calling thread."""
    start = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - start) / times


def rounds(operator: Callable[..., object], tensors: list[Tensor]) -> dict[str, list[float]]:
    """Milliseconds per call for each device and round; the devices take turns."""
    calls = {}
    for device in ("dipu", "cpu"):
        operands = [tensor.to(device) for tensor in tensors]
        calls[device] = lambda operands=operands: operator(*operands)
    times = {device: max(1, int(ROUND_SECONDS / max(seconds(call, 2), 1e-6))) for device, call in calls.items()}
    found: dict[str, list[float]] = {device: [] for device in calls}
    for _ in range(ROUNDS):
        for device, call in calls.items():
            found[device].append(1e3 * seconds(call, times[device]))
    return found


def main() -> None:
    """Measures every case, or those whose names hold the argument."""
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    torch.set_num_threads(1)
    torch.manual_seed(7)
    with torch.inference_mode():
        for name, (shapes, operator) in CASES.items():
            if part in name:
                print(json.dumps({"name": name, **rounds(operator, [torch.randn(shape) for shape in shapes])}))


if __name__ == "__main__":
    main()

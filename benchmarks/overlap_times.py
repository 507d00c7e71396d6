"""Prints what share of the communication of DDP steps is hidden behind other work, on the device named: `cuda` is torch's own.

To be run by torchrun, a process for each GPU; rank 0 prints a line of JSON for each figure, with a value for each step. The
times are those of torch.profiler on the device: the GPU's kernels for both, those of NCCL and all others; for a simulated chip the
collectives and the functions of operators.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, supported_activities
from training_gpu_times import TASKS, Task

WARM, STEPS = 5, 10
ON_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}  # the categories of a trace's events
COMMUNICATION = ("nccldevkernel", "ncclkernel", "all_reduce", "broadcast")

Interval = tuple[float, float]


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same time as intervals that do not touch, in their order."""
    found: list[Interval] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def length(intervals: Iterable[Interval]) -> float:
    """The sum of their lengths."""
    return sum(end - start for start, end in intervals)


def common(some: list[Interval], others: list[Interval]) -> float:
    """For how long both go on; each a union."""
    return sum(max(0.0, min(a[1], b[1]) - max(a[0], b[0])) for a in some for b in others)


def _communicates(event: dict[str, object]) -> bool:
    return str(event["name"]).lower().startswith(COMMUNICATION)


def device_times(trace: Path) -> tuple[list[Interval], list[Interval]]:
    """The unions of communication and of other work in an exported trace, in microseconds; raises ValueError without any."""
    events = json.loads(trace.read_text())["traceEvents"]
    events = [event for event in events if event.get("ph") == "X" and event.get("cat") in ON_DEVICE]
    communication, work = [], []
    for event in events:
        start = float(event["ts"])
        (communication if _communicates(event) else work).append((start, start + float(event["dur"])))
    if not communication or not work:
        raise ValueError(f"the trace has {len(communication)} events of communication and {len(work)} of other work")
    return union(communication), union(work)


def _small() -> nn.Module:
    return nn.Sequential(*(layer for _ in range(4) for layer in (nn.Linear(256, 256), nn.GELU())), nn.Linear(256, 10))


SMALL = Task(
    "small MLP",
    _small,
    lambda: (torch.randn(64, 256), torch.randint(10, (64,))),
    lambda model: torch.optim.SGD(model.parameters(), lr=1e-3),
)


def overlap(step: Callable[[], object], device: torch.device, steps: int) -> dict[str, list[float]]:
    """The figures of a step, profiled one by one, after one that is not counted."""
    module = torch.get_device_module(device.type)
    # Where torch can see the GPU's kernels these are taken, dipu's too: events around each of its calls would cost it time.
    kernels = ProfilerActivity.CUDA in supported_activities()
    activity = ProfilerActivity.CUDA if kernels else ProfilerActivity.PrivateUse1
    found: dict[str, list[float]] = {"communication, ms": [], "other work, ms": [], "communication hidden, share": []}
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        for number in range(1 + steps):
            dist.barrier()
            module.synchronize()
            with profile(activities=[ProfilerActivity.CPU, activity]) as profiled:
                step()
                module.synchronize()
            if number == 0:
                continue
            profiled.export_chrome_trace(str(trace))
            communication, work = device_times(trace)
            found["communication, ms"].append(1e-3 * length(communication))
            found["other work, ms"].append(1e-3 * length(work))
            found["communication hidden, share"].append(common(communication, work) / length(communication))
    return found


def ddp_step(task: Task, device: torch.device, bucket_mb: float) -> Callable[[], None]:
    """One step of a model, with gradients reduced while the backward pass goes on."""
    torch.manual_seed(20)
    model = task.model().to(device)
    torch.manual_seed(dist.get_rank())
    inputs, target = (tensor.to(device) for tensor in task.batch())
    parallel = DistributedDataParallel(model, bucket_cap_mb=bucket_mb)
    optimizer = task.optimizer(model)

    def step() -> None:
        optimizer.zero_grad()
        output = parallel(inputs)
        cross_entropy(output.reshape(-1, output.shape[-1]), target.reshape(-1)).backward()
        optimizer.step()

    return step


def main() -> None:
    """One process for each rank."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("device", choices=("cuda", "dipu"))
    parser.add_argument("--small", action="store_true", help="a model for a simulated chip instead of those for GPUs")
    options = parser.parse_args()
    if options.device == "dipu":
        import torch_dipu

        torch_dipu.start()
    device = torch.device(options.device, int(os.environ["LOCAL_RANK"]))
    torch.get_device_module(device.type).set_device(device)
    dist.init_process_group("dicl" if device.type == "dipu" else "nccl")
    for task in (SMALL,) if options.small else TASKS:
        step = ddp_step(task, device, 0.25 if options.small else 25)
        for _ in range(WARM):
            step()
        for name, values in overlap(step, device, STEPS).items():
            if dist.get_rank() == 0:
                line = {"device": device.type, "name": f"DDP step, {task.name}, {name}", "values": values}
                print(json.dumps(line), flush=True)
        del step
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

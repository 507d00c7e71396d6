"""Prints what collectives and steps of distributed training take for one rank, on the device named: `cuda` is torch's own.

To be run by torchrun, a process for each GPU; rank 0 prints a line of JSON for each figure.
"""

import json
import os
import sys
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from training_gpu_times import TASKS

WARM, CALLS, STEPS, HOST = 5, 60, 15, 25  # before what counts; rounds
SIZES = {"4 kB": 1 << 12, "1 MB": 1 << 20, "64 MB": 1 << 26, "512 MB": 1 << 29}  # bytes of each rank's float32 tensor


def _times(call: Callable[[], object], module: object, calls: int = CALLS) -> list[float]:
    """Wall-clock milliseconds of each call, from the host's view, until the device is done."""
    times = []
    for step in range(WARM + calls):
        dist.barrier()
        module.synchronize()
        start = time.perf_counter()
        call()
        module.synchronize()
        if step >= WARM:
            times.append(1e3 * (time.perf_counter() - start))
    return times


def _host_time(call: Callable[[], object], module: object, calls: int = 200) -> list[float]:
    """Microseconds for which the host is busy with one call; the device works behind it."""
    times = []
    for _ in range(HOST):
        for _ in range(calls):
            call()
        module.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        times.append(1e6 * (time.perf_counter() - start) / calls)
        module.synchronize()
    return times


def collectives(device: torch.device, module: object) -> dict[str, list[float]]:
    """The figures of plain collectives."""
    size = dist.get_world_size()
    found = {}
    for name, count in SIZES.items():
        values = torch.ones(count // 4, device=device)
        found[f"all_reduce {name}, ms"] = _times(lambda values=values: dist.all_reduce(values), module)
    part = torch.ones((1 << 26) // 4, device=device)
    whole = torch.ones(size * part.numel(), device=device)
    found["all_gather 64 MB, ms"] = _times(lambda: dist.all_gather_into_tensor(whole, part), module)
    found["reduce_scatter 64 MB, ms"] = _times(lambda: dist.reduce_scatter_tensor(part, whole), module)
    other = torch.empty_like(part)
    found["all_to_all 64 MB, ms"] = _times(lambda: dist.all_to_all_single(other, part), module)
    small = torch.ones((1 << 12) // 4, device=device)
    found["host, all_reduce 4 kB, us"] = _host_time(lambda: dist.all_reduce(small), module)
    return found


def training(device: torch.device, module: object) -> dict[str, tuple[list[float], float]]:
    """The milliseconds of steps and the last loss, by DDP and for LLaMA by FSDP2."""
    from torch.distributed.fsdp import fully_shard
    from torch.nn.functional import cross_entropy
    from torch.nn.parallel import DistributedDataParallel

    found = {}
    for way in ("DDP", "FSDP2"):
        for task in TASKS:
            if way == "FSDP2" and task.name != "LLaMA":
                continue
            torch.manual_seed(20)
            model = task.model().to(device)
            torch.manual_seed(dist.get_rank())
            inputs, target = (tensor.to(device) for tensor in task.batch())
            if way == "DDP":
                parallel = DistributedDataParallel(model)
            else:
                for layer in model.children():
                    if isinstance(layer, torch.nn.ModuleList):
                        for each in layer:
                            fully_shard(each)
                parallel = fully_shard(model)
            optimizer = task.optimizer(model)
            losses = []

            def step(parallel=parallel, inputs=inputs, target=target, optimizer=optimizer, losses=losses) -> None:
                optimizer.zero_grad()
                output = parallel(inputs)
                loss = cross_entropy(output.reshape(-1, output.shape[-1]), target.reshape(-1))
                loss.backward()
                optimizer.step()
                losses.append(loss)

            times = _times(step, module, STEPS)
            found[f"{way} step, {task.name}, ms"] = (times, losses[-1].item())
            del model, parallel, optimizer
    return found


def main() -> None:
    """One process for each rank."""
    name = sys.argv[1]
    if name == "dipu":
        import torch_dipu

        torch_dipu.start()
    module = torch.get_device_module(name)
    device = torch.device(name, int(os.environ["LOCAL_RANK"]))
    module.set_device(device)
    dist.init_process_group("dicl" if name == "dipu" else "nccl")
    lines = [{"name": key, "values": values} for key, values in collectives(device, module).items()]
    if "--collectives" not in sys.argv:
        lines += [
            {"name": key, "values": values, "loss": loss} for key, (values, loss) in training(device, module).items()
        ]
    if dist.get_rank() == 0:
        for line in lines:
            print(json.dumps({"device": name, **line}), flush=True)
        if name == "dipu":
            ways = [
                (row.collective, row.dtype, row.way, row.cause, row.calls) for row in torch.dipu.distributed.report()
            ]
            print(json.dumps({"ways": ways}), flush=True)
            fallen = [(row.operator, row.cause, row.count) for row in torch.dipu.fallback.report()]
            print(json.dumps({"fallbacks": fallen}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

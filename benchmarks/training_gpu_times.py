"""Prints the milliseconds of training steps at sizes that fill a GPU, on the device named: `cuda` is torch's own."""

import json
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "demo"))

from gpu_tasks import MORE, TASKS

from models import Task, loss_of

WARM, STEPS = 5, 20


def step_times(task: Task, device: str) -> dict[str, object]:
    """Wall-clock milliseconds of each step after the warm ones, and the last loss."""
    torch.manual_seed(20)
    module = torch.get_device_module(device)
    model = task.model().to(device)
    inputs, target = (tensor.to(device) for tensor in task.batch())
    optimizer = task.optimizer(model)
    times = []
    for step in range(WARM + STEPS):
        module.synchronize()
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = loss_of(model(inputs), target)
        loss.backward()
        optimizer.step()
        module.synchronize()
        if step >= WARM:
            times.append(1e3 * (time.perf_counter() - start))
    return {"name": task.name, "device": device, "ms": times, "loss": loss.item()}


def main() -> None:
    """One process for one device: torch has one accelerator in each."""
    device = sys.argv[1]
    if device == "dipu":
        import torch_dipu

        torch_dipu.start()
    for task in (*TASKS, *MORE):
        print(json.dumps(step_times(task, device)), flush=True)
    if device == "dipu":
        fallen = [(row.operator, row.cause, row.count) for row in torch.dipu.fallback.report()]
        print(json.dumps({"fallbacks": fallen}))


if __name__ == "__main__":
    main()

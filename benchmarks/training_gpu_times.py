"""Prints the milliseconds of training steps at sizes that fill a GPU, on the device named: `cuda` is torch's own."""

import json
import sys
import time
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "demo"))

from models import Block, Llama, Task, loss_of

WARM, STEPS = 5, 20


def _mlp() -> nn.Module:
    width = 4096
    hidden = [layer for _ in range(3) for layer in (nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width))]
    return nn.Sequential(*hidden, nn.Linear(width, 1000))


def _resnet() -> nn.Module:
    stem = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    blocks = nn.Sequential(Block(64, 64, 1), Block(64, 128, 2), Block(128, 256, 2), Block(256, 512, 2))
    return nn.Sequential(stem, blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


def _llama() -> nn.Module:
    return Llama(vocabulary=8192, width=1024, heads=16, layers=4, length=512)


def _adamw(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)


def _sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=True)


TASKS = (
    Task("MLP", _mlp, lambda: (torch.randn(4096, 4096), torch.randint(1000, (4096,))), _adamw),
    Task("ResNet", _resnet, lambda: (torch.randn(128, 3, 128, 128), torch.randint(1000, (128,))), _sgd),
    Task("LLaMA", _llama, lambda: (torch.randint(8192, (8, 512)), torch.randint(8192, (8, 512))), _adamw),
)


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
    for task in TASKS:
        print(json.dumps(step_times(task, device)), flush=True)
    if device == "dipu":
        fallen = [(row.operator, row.cause, row.count) for row in torch.dipu.fallback.report()]
        print(json.dumps({"fallbacks": fallen}))


if __name__ == "__main__":
    main()

"""Prints the milliseconds of each training step of the demo's models on dipu and on the CPU, one line of JSON each."""

import json
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "demo"))

from models import TASKS, Task
from train import train

STEPS = 22
WARM = 2


def step_times(task: Task, device: str) -> list[float]:
    """Milliseconds of CPU for each step after the first ones, on all threads of the process."""
    ends: list[float] = []
    train(task, device, STEPS, lambda: ends.append(time.process_time()))
    return [1e3 * (end - start) for start, end in zip(ends[WARM - 1 :], ends[WARM:], strict=False)]


def main() -> None:
    """Trains each model on both devices, the same steps from the same seed."""
    torch.set_num_threads(1)
    for task in TASKS:
        print(json.dumps({"name": task.name, **{device: step_times(task, device) for device in ("dipu", "cpu")}}))


if __name__ == "__main__":
    main()

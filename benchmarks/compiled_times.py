"""Prints the milliseconds of training steps, compiled and eager, on dipu and on the CPU, one line of JSON per model.

The four take turns, so that what else the machine does falls on all of them. A turn is many steps, as a training loop
is; its first ones, which find the caches as another mode left them, are not counted.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "demo"))

from models import TASKS, Task, loss_of

ROUNDS, STEPS, WARM = 6, 25, 5
MODES = {
    "dipu compiled": ("dipu", "diopi"),
    "dipu eager": ("dipu", None),
    "CPU eager": ("cpu", None),
    "CPU inductor": ("cpu", "inductor"),
}


def step_of(task: Task, device: str, backend: str | None) -> Callable[[], None]:
    """One training step: zero the gradients, forward, backward, optimizer."""
    torch.manual_seed(20)
    model = task.model().to(device)
    inputs, target = (tensor.to(device) for tensor in task.batch())
    optimizer = task.optimizer(model)
    run = loss_with(model) if backend is None else torch.compile(loss_with(model), backend=backend, dynamic=False)

    def step() -> None:
        optimizer.zero_grad()
        run(inputs, target).backward()
        optimizer.step()
        if device == "dipu":
            torch.dipu.synchronize()

    return step


def loss_with(model: torch.nn.Module) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    return lambda inputs, target: loss_of(model(inputs), target)


def times(task: Task, clock: Callable[[], float]) -> dict[str, list[float]]:
    """Milliseconds of each step, by mode."""
    steps = {mode: step_of(task, *how) for mode, how in MODES.items()}
    taken: dict[str, list[float]] = {mode: [] for mode in steps}
    for _ in range(ROUNDS):
        for mode, step in steps.items():
            for _ in range(WARM):
                step()
            for _ in range(STEPS):
                start = clock()
                step()
                taken[mode].append(1e3 * (clock() - start))
    return taken


def main() -> None:
    """One thread: processor time, on one core, where autograd's thread for a device runs too. Several: the wall's."""
    threads = int(os.environ.get("DROPLET_THREADS", "1"))
    torch.set_num_threads(threads)
    if threads == 1:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    wanted = sys.argv[1:]
    for task in TASKS:
        if not wanted or task.name in wanted:
            clock = time.process_time if threads == 1 else time.perf_counter
            print(json.dumps({"name": task.name, "threads": threads, **times(task, clock)}), flush=True)


if __name__ == "__main__":
    main()

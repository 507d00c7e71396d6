"""Trains a task on a device and keeps what is worth comparing."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from models import Task, loss_of

SEED = 20


@dataclass(frozen=True)
class Run:
    """One training run: the loss after each step, and the seconds that each took."""

    losses: tuple[float, ...]
    seconds: tuple[float, ...]

    @property
    def step_ms(self) -> float:
        """The median time of a step, in milliseconds, without the first two."""
        return 1e3 * median(self.seconds[2:] or self.seconds)


def train(task: Task, device: str, steps: int, advance: Callable[[], None] = lambda: None) -> Run:
    """Trains on one batch from one seed; parameters and data are made on the CPU, so that devices start alike."""
    torch.manual_seed(SEED)
    model = task.model().to(device)
    inputs, target = (tensor.to(device) for tensor in task.batch())
    optimizer = task.optimizer(model)
    losses, seconds = [], []
    for _ in range(steps):
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = loss_of(model(inputs), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - start)
        advance()
    return Run(tuple(losses), tuple(seconds))


class _Recorder(TorchDispatchMode):
    """Keeps the name of every operator that reaches a backend."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.names.add(f"aten::{func.__name__.removesuffix('.default')}")
        return func(*args, **(kwargs or {}))


def operators_of_step(task: Task, device: str) -> set[str]:
    """The operators of one training step, e.g. "aten::add.Tensor"."""
    torch.manual_seed(SEED)
    model = task.model().to(device)
    inputs, target = (tensor.to(device) for tensor in task.batch())
    optimizer = task.optimizer(model)
    with _Recorder() as recorder:
        loss_of(model(inputs), target).backward()
        optimizer.step()
    return recorder.names


def relative_difference(a: float, b: float) -> float:
    """|a - b| / |b|, b being the reference."""
    return abs(a - b) / max(abs(b), 1e-30)

"""Trains a model on `dipu` and on the CPU, and says whether they agree."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from rich import box
from rich.table import Table

from models import Task
from train import Run, operators_of_step, relative_difference, train

EARLY, LATE = 1e-5, 1e-3  # the largest relative difference of losses: after two steps, and at the end


@dataclass(frozen=True)
class Comparison:
    """What one model did on both devices."""

    name: str
    dipu: Run
    cpu: Run
    native: int  # operators of a step that ran on the device
    fallen: int  # and that fell back to the CPU

    @property
    def difference(self) -> float:
        """Of the last losses, relative to the CPU's."""
        return relative_difference(self.dipu.losses[-1], self.cpu.losses[-1])

    @property
    def good(self) -> bool:
        """Whether the losses agree and no operator fell back."""
        second = min(1, len(self.cpu.losses) - 1)
        early = relative_difference(self.dipu.losses[second], self.cpu.losses[second])
        return early <= EARLY and self.difference <= LATE and self.fallen == 0


def compared(task: Task, steps: int, advance: Callable[[], None]) -> Comparison:
    """Trains on both devices; `advance` is called after each of the 2 * `steps` steps."""
    torch.dipu.fallback.reset()
    dipu = train(task, "dipu", steps, advance)
    operators = operators_of_step(task, "dipu")
    fallen = {fallback.operator for fallback in torch.dipu.fallback.report()}
    cpu = train(task, "cpu", steps, advance)
    return Comparison(task.name, dipu, cpu, len(operators) - len(fallen), len(fallen))


def table(comparisons: Sequence[Comparison], steps: int) -> Table:
    """One row for each model, in 80 columns."""
    title = f"{steps} steps of each model, float32, the same seed on both devices"
    found = Table(title=title, title_justify="left", box=box.SIMPLE)
    found.add_column("model")
    for column in ("loss on\ndipu", "loss on\nCPU", "relative\nerror", "native\nops", "fell\nback"):
        found.add_column(column, justify="right")
    for device in ("dipu", "CPU"):
        found.add_column(f"step on\n{device}", justify="right")
    for each in comparisons:
        losses = (f"{each.dipu.losses[-1]:.6f}", f"{each.cpu.losses[-1]:.6f}", f"{each.difference:.1e}")
        times = (f"{each.dipu.step_ms:.1f} ms", f"{each.cpu.step_ms:.1f} ms")
        found.add_row(each.name, *losses, str(each.native), str(each.fallen), *times)
    return found

"""Which part of a training step a call belongs to."""

import threading
from typing import Any

import torch

FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer"


class _Optimizers(threading.local):
    depth = 0


_optimizers = _Optimizers()


def _enter(*_: Any) -> None:
    _optimizers.depth += 1


def _leave(*_: Any) -> None:
    _optimizers.depth = max(0, _optimizers.depth - 1)


class OptimizerWatch:
    """Knows, while it is on, when an optimizer of this process takes a step."""

    def __init__(self) -> None:
        self._handles: list[Any] = []

    def start(self) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        self._handles = [register_optimizer_step_pre_hook(_enter), register_optimizer_step_post_hook(_leave)]

    def stop(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []


graph_task = torch._C._current_graph_task_id  # -1 where this thread computes no gradients
optimizers = _optimizers


def phase() -> str:
    """FORWARD, BACKWARD or OPTIMIZER: where this thread is now."""
    return phase_of(graph_task(), optimizers.depth)


def phase_of(task: int, depth: int) -> str:
    """The phase, of `graph_task()` and `optimizers.depth` as they were."""
    if task != -1:
        return BACKWARD
    return OPTIMIZER if depth else FORWARD


def backward_node() -> tuple[str, int | None]:
    """The node of the graph whose gradient this thread computes, and its number, which its forward call has, too."""
    node = torch._C._current_autograd_node()
    if node is None:
        return "", None
    number = node._sequence_nr()
    return str(node.name()), None if number >= 1 << 62 else int(number)

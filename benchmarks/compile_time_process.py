"""Prints what a first training step of the demo's LLaMA takes, as JSON: seconds of imports and of the step.

Called with a device and a backend of torch.compile. The imports are those that torch.compile does whatever the model;
that of torch itself and the making of the model are before them.
"""

import importlib
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "demo"))

from models import TASKS, loss_of


def main() -> None:
    """The step is compiled, run forward and backward, and waited for."""
    device, backend = sys.argv[1:]
    task = next(task for task in TASKS if task.name == "LLaMA")
    torch.set_num_threads(1)
    torch.manual_seed(20)
    model = task.model().to(device)
    inputs, target = (tensor.to(device) for tensor in task.batch())
    begin = time.perf_counter()
    importlib.import_module("torch._dynamo").list_backends()
    imported, used = time.perf_counter(), processor()
    compiled = torch.compile(step_of(model), backend=backend, dynamic=False)
    compiled(inputs, target).backward()
    norm = float(sum(parameter.grad.double().norm() for parameter in model.parameters()))
    ended, used = time.perf_counter(), processor() - used
    torch.compiler.save_cache_artifacts()
    print(json.dumps({"imports": imported - begin, "wall": ended - imported, "processor": used, "gradients": norm}))


def processor() -> float:
    """Seconds of processors so far, of this process and of the compilers that it waited for."""
    own, compilers = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + compilers.ru_utime + compilers.ru_stime


def step_of(model: torch.nn.Module) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """The loss of a batch."""

    def step(inputs: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return loss_of(model(inputs), target)

    return step


if __name__ == "__main__":
    main()

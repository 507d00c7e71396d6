"""Prints the milliseconds of bf16 training steps at sizes that fill a GPU.

`compiled_gpu_times.py cuda|dipu eager|inductor|diopi|recorded [model...]`: one process for one device, since torch has
one accelerator in each. `recorded` is diopi with mode="reduce-overhead".
"""

import json
import sys
import time
from collections.abc import Callable

import torch
from training_gpu_times import STEPS, TASKS, WARM, Task, loss_of


def step_of(task: Task, device: str, backend: str | None) -> Callable[[], torch.Tensor]:
    """One training step in bf16, which ends with the device's work; it gives the loss."""
    torch.manual_seed(20)
    torch._dynamo.reset()
    module = torch.get_device_module(device)
    model = task.model().to(torch.bfloat16).to(device)
    inputs, target = (tensor.to(device) for tensor in task.batch())
    inputs = inputs.to(torch.bfloat16) if inputs.is_floating_point() else inputs
    optimizer = task.optimizer(model)

    def loss_with(inputs: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return loss_of(model(inputs), target)

    options = {"mode": "reduce-overhead"} if backend == "recorded" else {}
    run = (
        loss_with if backend is None else torch.compile(loss_with, backend=compiler(backend), dynamic=False, **options)
    )

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = run(inputs, target)
        loss.backward()
        optimizer.step()
        module.synchronize()
        return loss

    return step


def step_times(task: Task, device: str, backend: str | None) -> dict[str, object]:
    """Wall-clock milliseconds of each step after the warm ones, what compiling took, and the last loss."""
    step = step_of(task, device, backend)
    taken = []
    for _ in range(WARM + STEPS):
        start = time.perf_counter()
        loss = step()
        taken.append(time.perf_counter() - start)
    return {
        "name": task.name,
        "device": device,
        "backend": backend or "eager",
        "ms": [1e3 * seconds for seconds in taken[WARM:]],
        "first_s": taken[0],
        "loss": loss.item(),
    }


def compiler(backend: str) -> object:
    """Ours by its function, so that it need not be installed where torch is."""
    if backend not in ("diopi", "recorded"):
        return backend
    from dicp.backend import diopi

    return diopi


def main() -> None:
    """Every task on the device named."""
    device, mode, *names = sys.argv[1:]
    if device == "dipu":
        import torch_dipu

        torch_dipu.start()
    for task in (task for task in TASKS if not names or task.name in names):
        try:
            print(json.dumps(step_times(task, device, None if mode == "eager" else mode)), flush=True)
        except Exception as error:  # the others are measured all the same
            print(json.dumps({"name": task.name, "error": f"{type(error).__name__}: {error}"[:2000]}), flush=True)
    if mode in ("diopi", "recorded"):
        from dicp import explain

        for report in explain.reports():
            print("\n".join(report.text().splitlines()[: 2 if mode == "recorded" else 1]), file=sys.stderr)


if __name__ == "__main__":
    main()

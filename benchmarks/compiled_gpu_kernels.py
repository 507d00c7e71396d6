"""Prints where a bf16 training step spends a GPU's time: kernels by their share, launches, and the wall's clock.

`compiled_gpu_kernels.py cuda|dipu eager|inductor|diopi [model...]`: the models and modes of compiled_gpu_times.py.
"""

import sys
import time
from collections import Counter
from collections.abc import Callable

import torch
from compiled_gpu_times import step_of
from torch.profiler import ProfilerActivity, profile
from training_gpu_times import TASKS

WARM, STEPS, SHOWN = 5, 5, 28


def kernel_times(step: Callable[[], object]) -> tuple[Counter[str], Counter[str]]:
    """Microseconds of a step by kernel, and how often each is launched."""
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        for _ in range(STEPS):
            step()
    spent: Counter[str] = Counter()
    launches: Counter[str] = Counter()
    for event in seen.profiler.kineto_results.events():
        if event.device_type() != torch.autograd.DeviceType.CPU and is_kernel(event.name()):
            spent[event.name()] += event.duration_ns() / 1e3 / STEPS
            launches[event.name()] += 1 / STEPS
    return spent, launches


def is_kernel(name: str) -> bool:
    """Ranges of users and of functions of the contract are events of the device, too."""
    return "#" not in name and not (name.startswith("diopi") and "::" not in name)


def main() -> None:
    """Every task on the device named."""
    device, mode, *names = sys.argv[1:]
    if device == "dipu":
        import torch_dipu

        torch_dipu.start()
    for task in (task for task in TASKS if not names or task.name in names):
        step = step_of(task, device, None if mode == "eager" else mode)
        for _ in range(WARM):
            step()
        start = time.perf_counter()
        for _ in range(STEPS):
            step()
        wall = 1e3 * (time.perf_counter() - start) / STEPS
        spent, launches = kernel_times(step)
        busy = sum(spent.values()) / 1e3
        count = sum(launches.values())
        print(f"{task.name} on {device}, {mode}: {wall:.2f} ms a step, {busy:.2f} of them in {count:.0f} kernels")
        for name, microseconds in spent.most_common(SHOWN):
            print(f"  {microseconds:8.1f} us  {launches[name]:5.1f} x  {name[:110]}", flush=True)


if __name__ == "__main__":
    main()

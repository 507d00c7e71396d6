"""Prints what training steps and decoding take at sizes that fill a GPU, and which kinds of kernels take it.

One process for one device, since torch has one accelerator in each; a line of JSON for each model.
"""

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "demo"))

from gpu_tasks import MORE, TASKS, UNTUNED, Decoder

from models import Task, loss_of

WARM, STEPS, PROFILED, TOKENS = 6, 20, 5, 100
MODES = {  # what torch.compile is asked for; None: nothing
    "eager": None,
    "inductor": {"backend": "inductor"},
    "graphs": {"backend": "inductor", "mode": "reduce-overhead"},
    "diopi": {"backend": "diopi"},
    "recorded": {"backend": "diopi", "mode": "reduce-overhead"},
}
KINDS = {  # of a kernel by its name; the first that fits
    "attention": r"sdpa|flash|fmha|attention|compute_dot_do_o|convert_dq",
    "turning": r"nchwToNhwc|nhwcToNchw|nhwcAddPadding",
    "convolution": r"fprop|wgrad|dgrad|convolve|cudnn",
    "product": r"gemm|nvjet|splitK|gemv",
    "copy": r"memcpy|memset|copy",
    "optimizer": r"multi_tensor|fused_adam|ListTask",
    "reduction": r"Reduction|KeptChanges|PartTask|WholeTask|JoinTask|triton_(red|per)|reduce|Rows|TeamTask|by_teams|norm|softmax",
    "elementwise": r"triton_poi|elementwise|Packs|PackedTask|ElementTask|by_threads",
}


@dataclass(frozen=True)
class Step:
    """What is measured: a call that launches one step's work, and the model's name."""

    name: str
    run: Callable[[], torch.Tensor]


def compiled(function: Callable[..., torch.Tensor], mode: str) -> Callable[..., torch.Tensor]:
    """The function as a mode of MODES runs it; ours is given by its function, so that it need not be installed."""
    options = MODES[mode]
    if options is None:
        return function
    torch._dynamo.reset()
    if options["backend"] == "diopi":
        from dicp.backend import diopi

        options = options | {"backend": diopi}
    return torch.compile(function, dynamic=False, **options)


def training_step(task: Task, device: str, mode: str, dtype: torch.dtype) -> Step:
    """One training step; it gives the loss."""
    torch.manual_seed(20)
    model = task.model().to(dtype).to(device)
    inputs, target = (tensor.to(device) for tensor in task.batch())
    inputs = inputs.to(dtype) if inputs.is_floating_point() else inputs
    optimizer = task.optimizer(model)
    run = compiled(lambda inputs, target: loss_of(model(inputs), target), mode)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        if mode == "graphs":
            torch.compiler.cudagraph_mark_step_begin()
        loss = run(inputs, target)
        loss.backward()
        optimizer.step()
        return loss

    return Step(task.name, step)


def decoding_step(device: str, mode: str, dtype: torch.dtype) -> Step:
    """One token of a text; it gives the next one."""
    torch.manual_seed(20)
    model = Decoder().to(dtype).to(device).eval().requires_grad_(False)
    run = compiled(model, mode)
    token, places = torch.zeros(1, 1, dtype=torch.int64).to(device), torch.arange(512).to(device)
    count = 0

    def step() -> torch.Tensor:
        nonlocal token, count
        if mode == "graphs":
            torch.compiler.cudagraph_mark_step_begin()
        place = places[count : count + 1]
        count = (count + 1) % len(places)
        with torch.no_grad():
            token = run(token, place).clone()
        return token

    return Step("decoding", step)


def measured(step: Step, device: str) -> dict[str, object]:
    """Milliseconds of each step after the warm ones, by the clock and of the host; the first one's seconds; kernels."""
    module = torch.get_device_module(device)
    walls, hosts = [], []
    count = TOKENS if step.name == "decoding" else STEPS
    for _ in range(WARM + count):
        start, host = time.perf_counter(), time.thread_time()
        last = step.run()
        hosts.append(time.thread_time() - host)
        module.synchronize()
        walls.append(time.perf_counter() - start)
    kernels, launches = kernel_times(step.run, module)
    kinds: Counter[str] = Counter()
    for name, microseconds in kernels.items():
        kinds[next((kind for kind, form in KINDS.items() if re.search(form, name)), "other")] += microseconds / 1e3
    return {
        "ms": [1e3 * seconds for seconds in walls[WARM:]],
        "host_ms": [1e3 * seconds for seconds in hosts[WARM:]],
        "first_s": walls[0],
        "last": last.item(),
        "kinds_ms": {kind: round(spent, 3) for kind, spent in kinds.most_common()},
        "launches": round(sum(launches.values())),
    }


def kernel_times(run: Callable[[], object], module: object) -> tuple[Counter[str], Counter[str]]:
    """Microseconds of a step by kernel, and how often each is launched."""
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        for _ in range(PROFILED):
            run()
        module.synchronize()
    spent: Counter[str] = Counter()
    launches: Counter[str] = Counter()
    for event in seen.profiler.kineto_results.events():
        if event.device_type() != torch.autograd.DeviceType.CPU and _is_kernel(event.name()):
            spent[event.name()] += event.duration_ns() / 1e3 / PROFILED
            launches[event.name()] += 1 / PROFILED
    return spent, launches


def _is_kernel(name: str) -> bool:
    """Ranges of users (`Optimizer.step#SGD.step`) and of functions of the contract are events of the device, too."""
    return "::" in name or not ("#" in name or name.startswith("diopi"))


def recordings() -> dict[str, int]:
    """Runs of programs so far: by one launch, and those whose launches were issued one by one."""
    from dicp import explain

    found = [report.executable.replays() or {} for report in explain.reports() if report.executable is not None]
    return {name: sum(each.get(name, 0) for each in found) for name in ("launched", "issued")}


def main() -> None:
    """Every model that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", choices=("cuda", "dipu"))
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("models", nargs="*", help="by name; all if none")
    parser.add_argument("--dtype", default="bf16", choices=("bf16", "f32", "high"), help="high: float32 with TF32")
    parser.add_argument("--untuned", action="store_true", help="models of torchvision")
    parser.add_argument("--kernels", type=int, default=0, metavar="N", help="show the N slowest kernels, too")
    asked = parser.parse_args()
    if asked.device == "dipu":
        import torch_dipu

        torch_dipu.start()
    if asked.dtype == "high":
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.conv.fp32_precision = "tf32"
    dtype = torch.bfloat16 if asked.dtype == "bf16" else torch.float32
    tasks = UNTUNED if asked.untuned else (*TASKS, *MORE)
    makers = {task.name: lambda task=task: training_step(task, asked.device, asked.mode, dtype) for task in tasks}
    if not asked.untuned:
        makers["decoding"] = lambda: decoding_step(asked.device, asked.mode, dtype)
    for name in asked.models or makers:
        facts = {"name": name, "device": asked.device, "mode": asked.mode, "dtype": asked.dtype}
        try:
            step = makers[name]()
            print(json.dumps(facts | measured(step, asked.device)), flush=True)
            if asked.kernels:
                spent, launches = kernel_times(step.run, torch.get_device_module(asked.device))
                for kernel, microseconds in spent.most_common(asked.kernels):
                    print(f"  {microseconds:8.1f} us {launches[kernel]:6.1f} x  {kernel[:150]}", file=sys.stderr)
        except Exception as error:  # the others are measured all the same
            print(json.dumps(facts | {"error": f"{type(error).__name__}: {error}"[:2000]}), flush=True)
    if asked.mode == "recorded":
        print(json.dumps({"recordings": recordings()}), flush=True)


if __name__ == "__main__":
    main()

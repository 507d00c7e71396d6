"""Prints the host's microseconds for a run of a compiled model, as it is and with mode="reduce-overhead", by turns.

It is the processor time of the thread that runs the model; with DROPLET_ASYNC=1 droplet works behind it.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable

import torch

WARM, STEPS = 20, 400
LAYERS = (2, 8, 32)
MODES = {"as it is": None, "recorded": "reduce-overhead"}


def step_of(layers: int, mode: str | None) -> Callable[[], None]:
    """A run of `layers` linear layers with normalization; nobody keeps the result."""
    torch.manual_seed(20)
    parts = [part for _ in range(layers) for part in (torch.nn.Linear(16, 16), torch.nn.LayerNorm(16), torch.nn.GELU())]
    model = torch.nn.Sequential(*parts).to("dipu")
    run = torch.compile(model, backend="diopi", fullgraph=True, dynamic=False, mode=mode)
    x = torch.randn(4, 16).to("dipu")

    def step() -> None:
        with torch.no_grad():
            run(x)

    return step


def microseconds(layers: int) -> dict[str, float]:
    """The median of each mode."""
    steps = {name: step_of(layers, mode) for name, mode in MODES.items()}
    taken: dict[str, list[float]] = {name: [] for name in MODES}
    for number in range(WARM + STEPS):
        for name, step in steps.items():
            start = time.thread_time()
            step()
            if number >= WARM:
                taken[name].append(1e6 * (time.thread_time() - start))
            torch.dipu.synchronize()
    return {name: round(statistics.median(each), 1) for name, each in taken.items()}


def main() -> int:
    for layers in LAYERS:
        torch._dynamo.reset()
        print(json.dumps({"layers": layers, **microseconds(layers)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Prints the milliseconds of each training step of the demo's models on dipu and on the CPU, one line of JSON each."""

import json
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "demo"))

from models import TASKS
from train import train

STEPS = 22
WARM = 2


def main() -> None:
    """Trains each model on both devices, the same steps from the same seed."""
    torch.set_num_threads(1)
    for task in TASKS:
        found = {device: train(task, device, STEPS).seconds[WARM:] for device in ("dipu", "cpu")}
        print(json.dumps({"name": task.name, **{device: [1e3 * each for each in found[device]] for device in found}}))


if __name__ == "__main__":
    main()

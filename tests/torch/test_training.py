"""The three demo models train on dipu as they do on the CPU, without an operator that falls back, in both modes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import json, sys
import torch
from models import TASKS
from train import train

task = next(t for t in TASKS if t.name == sys.argv[1])
torch.dipu.fallback.reset()
dipu = train(task, "dipu", 50)
fallbacks = [f.operator for f in torch.dipu.fallback.report()]
cpu = train(task, "cpu", 50)
print(json.dumps({"dipu": dipu.losses, "cpu": cpu.losses, "fallbacks": fallbacks}))
"""


RUNS = [
    *((model, "asynchronous") for model in ("MLP", "ResNet", "LLaMA")),
    ("MLP", "synchronous"),
    *(
        pytest.param(model, "synchronous", marks=pytest.mark.deep("matrix", "an MLP so, and the others asynchronous"))
        for model in ("ResNet", "LLaMA")
    ),
]


@pytest.mark.parametrize(("model", "mode"), RUNS)
def test_losses_agree_and_nothing_falls_back(model: str, mode: str) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "demo"),
        "DROPLET_ASYNC": "1" if mode == "asynchronous" else "0",
    }
    environment.pop("TORCH_DEVICE_BACKEND_AUTOLOAD", None)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, model], env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout.splitlines()[-1])
    assert run["fallbacks"] == []
    assert run["dipu"][-1] < 0.9 * run["dipu"][0]
    for step, tolerance in ((0, 1e-5), (1, 1e-5), (49, 1e-3)):
        assert run["dipu"][step] == pytest.approx(run["cpu"][step], rel=tolerance)

"""Tools over whole training steps: forced to the CPU or cast, they train the same weights; what is captured replays."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.processes import ROOT

# Writes in place, by index, through views, with out= and into lists; loss and weights of each way, as bytes.
TRAINING = """
import json, sys
import torch
import torch_dipu
import op_tools

torch_dipu.start()
torch.set_num_threads(1)
OPTIMIZERS = {
    "adamw": lambda p, **how: torch.optim.AdamW(p, lr=0.05, **how),
    "sgd": lambda p, **how: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, **how),
}

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Embedding(7, 6)
        self.norm = torch.nn.BatchNorm1d(6)
        self.last = torch.nn.Linear(6, 3)
        self.register_buffer("seen", torch.zeros(7))

    def forward(self, places):
        self.seen[places] += 1
        self.seen.index_add_(0, places, torch.ones(places.numel(), device=places.device))
        x = self.norm(self.tokens(places)) * 1
        x[:, 0] = 0.5
        x[:, 1:3].mul_(2)
        x.clamp_(-3, 3)
        return self.last(x)

def trained(device, optimizer, how):
    torch.manual_seed(1)
    model = Model().to(device)
    places = torch.arange(12).remainder(7).to(device)
    classes = torch.arange(12).remainder(3).to(device)
    scaled = torch.empty(0, device=device)
    training = OPTIMIZERS[optimizer](model.parameters(), **how)
    for _ in range(3):
        training.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(places), classes)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        training.step()
        torch.mul(model.seen, 0.5, out=scaled)
        model.seen.copy_(scaled)
    return [loss.item(), *(t.double().flatten().tolist() for t in model.state_dict().values())]

HOWS = ({"foreach": False}, {"foreach": True}, {"fused": True})
WAYS = [(name, how) for name in OPTIMIZERS for how in HOWS]
"""
ON_CPU = """
for way in WAYS:
    with op_tools.OpFallback(".*") as tool:
        forced = trained("dipu", *way)
    same, left = forced == trained("cpu", *way), len(tool.left)
    print(json.dumps({"way": way, "same": same, "calls": sum(tool.calls.values()), "left": left}))
"""
CAST = """
import os
import numpy as np
os.environ["OP_DTYPE_CAST_DICT"] = "torch.float32->torch.float64"
def flat(found):
    return np.concatenate([np.ravel(each) for each in found])
for way in WAYS:
    plain = flat(trained("dipu", *way))
    with op_tools.OpDtypeCast(".*"):
        cast = flat(trained("dipu", *way))
    worst = float(np.abs(cast - plain).max())
    print(json.dumps({"way": way, "worst": worst, "largest": float(np.abs(plain).max())}))
"""
CAPTURED = """
import json, sys
import torch
import op_tools
from pathlib import Path
from op_tools.replay import replay
from op_tools.store.reader import captures

sys.path.insert(0, sys.argv[3])
from models import TASKS, loss_of

device = sys.argv[1]
if device == "dipu":
    import torch_dipu
    torch_dipu.start()
torch.set_num_threads(1)
torch.manual_seed(0)
task = next(each for each in TASKS if each.name == "LLaMA")
model = task.model().to(device)
tokens, target = (each.to(device) for each in task.batch())
optimizer = task.optimizer(model)
with op_tools.OpCapture(".*", folder=sys.argv[2]) as tool:
    loss_of(model(tokens), target).backward()
    optimizer.step()
found = list(captures(Path(sys.argv[2])))
wrong = [again.text for again in (replay(each, device, against_cpu=False) for each in found) if not again.good]
phases = sorted({each.record["phase"] for each in found})
written = sum(tool.writer.written.values())
print(json.dumps({"written": written, "read": len(found), "wrong": wrong, "phases": phases}))
"""


@pytest.fixture
def told(on_dipu: Callable[..., Any]) -> Callable[..., Any]:
    def run(program: str, *arguments: str) -> Any:
        done = on_dipu("-c", program, *arguments)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def test_what_is_forced_to_the_cpu_trains_the_weights_of_the_cpu(told: Callable[..., Any]) -> None:
    found = told(TRAINING + ON_CPU)
    assert len(found) == 6
    assert [way for way in found if not way["same"] or way["left"] or way["calls"] < 50] == []


def test_what_is_cast_to_float64_trains_the_same_weights_but_for_roundings(told: Callable[..., Any]) -> None:
    found = told(TRAINING + CAST)
    assert len(found) == 6
    assert [way for way in found if not 0 < way["worst"] < 1e-4 * way["largest"]] == []


@pytest.mark.parametrize("device", ["cpu", "dipu"])
def test_each_call_of_a_language_model_s_step_replays_to_what_it_gave(
    told: Callable[..., Any], tmp_path: Path, device: str
) -> None:
    (found,) = told(CAPTURED, device, str(tmp_path), str(ROOT / "demo"))
    assert found["read"] == found["written"] > 200 and found["wrong"] == []
    assert found["phases"] == ["backward", "forward", "optimizer"]

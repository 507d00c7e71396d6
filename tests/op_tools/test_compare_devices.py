"""A run on the CPU beside one on dipu: equal where the device is right, the faulty operator named where it is not."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from op_tools.cli import main
from tests.processes import ROOT, run_warm

# Weights and data are drawn on the CPU. The operators differ: dipu has linear layers and attention of its own.
SCRIPT = f"""\
import sys
import torch
from torch import nn
from torch.nn import functional as F

device, *planted = sys.argv[1:]
if device == "dipu":
    import torch_dipu
    torch_dipu.start()
if planted:
    sys.path.append({str(ROOT)!r})
    from tools.op_faults.planting import plant
    plant(*planted)
torch.set_num_threads(1)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.norm = nn.Embedding(11, 16), nn.LayerNorm(16)
        self.query, self.value, self.gate, self.up, self.down = (nn.Linear(16, 16) for _ in range(5))
        self.convolution, self.head = nn.Conv1d(16, 16, 3, padding=1), nn.Linear(16, 5)

    def forward(self, tokens):
        x = self.embedding(tokens)
        q, v = (f(self.norm(x)).unflatten(-1, (2, 8)).transpose(1, 2) for f in (self.query, self.value))
        x = x + F.scaled_dot_product_attention(q, q, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + self.down(F.silu(self.gate(x)) * F.gelu(self.up(x)))
        x = self.convolution(x.transpose(1, 2)).transpose(1, 2)
        kept = torch.zeros_like(x)
        kept[:, 0] = 0.5
        return self.head(x.add_(kept).softmax(-1))

torch.manual_seed(0)
model, tokens, classes = Model().to(device), torch.randint(11, (3, 6)).to(device), torch.randint(5, (18,)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=False)
for _ in range(2):
    optimizer.zero_grad()
    F.cross_entropy(model(tokens).flatten(0, 1), classes).backward()
    optimizer.step()
"""


def record(folder: Path, *arguments: str) -> Path:
    """Runs the script with its arguments, and gives the recording."""
    (folder / "train.py").write_text(SCRIPT)
    words = ("-m", "op_tools", "run", "train.py", "--record", "recorded", "--", *arguments)
    done = run_warm(*words, folder=folder, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "recorded"


@pytest.fixture(scope="module")
def on_cpu(tmp_path_factory, libraries):
    return record(tmp_path_factory.mktemp("on_cpu"), "cpu")


@pytest.fixture
def compared(on_cpu, tmp_path):
    """The exit code, the text and the JSON of comparing the CPU with dipu, where one operator may be faulty."""

    def compare(*planted: str):
        made = tmp_path / "found.json"
        done = CliRunner().invoke(
            main, ["compare-runs", str(on_cpu), str(record(tmp_path, "dipu", *planted)), "--json", str(made)]
        )
        assert done.stderr == ""
        return done.exit_code, done.stdout, json.loads(made.read_text())

    return compare


def test_a_device_that_is_right_is_equal_to_the_cpu_though_its_operators_are_others(compared):
    code, text, found = compared()
    assert code == 0 and found["equal"], text
    (process,) = found["processes"]
    cpu, dipu = process["calls"]
    assert cpu != dipu and process["paired"] > 200
    assert "aten.addmm.default" in process["only"][0] and "aten.linear.default" in process["only"][1]


@pytest.mark.parametrize(
    ("operator", "kind", "phase", "module"),
    [
        ("aten.silu.default", "wrong value", "forward", ""),
        ("aten.linear.default", "wrong value", "forward", "query"),
        ("aten._softmax.default", "wrong stride", "forward", ""),
        ("aten.native_layer_norm_backward.default", "wrong backward", "backward", "norm"),
        ("aten.addcdiv_.default", "wrong value", "optimizer", ""),
    ],
)
def test_an_operator_that_is_wrong_on_the_device_is_named(compared, operator, kind, phase, module):
    code, text, found = compared(operator, kind)
    assert code == 1 and not found["equal"]
    first = found["first"]
    assert (first["kind"], first["run"], first["call"]["operator"]) == ("wrong", "B", operator), text
    assert (first["call"]["phase"], first["call"]["module"]) == (phase, module), text
    assert first["call"]["device"] == "dipu:0" and first["call"]["location"].startswith("train.py:")
    title = f"{first['call']['function']} ({operator})" if first["call"]["function"] else operator
    assert f"first divergence: {title}, in B: " in text and "expected" in first["reason"]

"""Tools in programs of several processes: ranks of DDP, and workers of a DataLoader."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import op_tools
from op_tools.store.reader import captures

ROOT = Path(__file__).resolve().parents[2]
RANK = """
import json, os, sys
import torch
import op_tools

torch.set_num_threads(1)
torch.manual_seed(0)
store = f"file://{sys.argv[1]}/store"
torch.distributed.init_process_group("gloo", init_method=store, rank=int(sys.argv[2]), world_size=2)
layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))
model = torch.nn.parallel.DistributedDataParallel(layers)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
inputs = torch.randn(2, 6, 4)[int(sys.argv[2])]
with op_tools.OpAutoCompare() as compare, op_tools.OpCapture("aten.addmm", folder=f"{sys.argv[1]}/captures"):
    for _ in range(2):
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()
weights = torch.cat([p.detach().flatten() for p in model.parameters()])
torch.distributed.destroy_process_group()
wrong = [mismatch.text for mismatch in compare.mismatches]
print(json.dumps({"compared": sum(compare.compared.values()), "wrong": wrong, "weights": weights.tolist()}))
"""


def test_ranks_of_ddp_are_compared_and_captured_each_for_itself(tmp_path: Path) -> None:
    folders = (ROOT / "python" / "op_tools", ROOT / "conformance", ROOT / "generators")
    variables = {"PYTHONPATH": os.pathsep.join(map(str, folders)), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(tmp_path), str(rank)],
            env={**os.environ, **variables},
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    told = []
    for rank in ranks:
        out, error = rank.communicate(timeout=120)
        assert rank.returncode == 0, error
        told.append(json.loads(out.splitlines()[-1]))
    assert [found["wrong"] for found in told] == [[], []] and all(found["compared"] > 50 for found in told)
    assert told[0]["weights"] == told[1]["weights"]
    assert len(list(captures(tmp_path / "captures"))) == 8
    # <operator>/<pid>/<number>/<time>/input.json
    assert len({path.parents[2].name for path in (tmp_path / "captures").rglob("input.json")}) == 2


def test_workers_of_a_data_loader_are_left_alone_and_their_batches_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # tables go to the working folder
    data = TensorDataset(torch.arange(12.0).reshape(6, 2))
    with op_tools.OpAutoCompare() as tool:
        sums = [batch.square().sum().item() for (batch,) in DataLoader(data, batch_size=2, num_workers=2)]
    assert sums == [14.0, 126.0, 366.0]
    assert tool.mismatches == [] and tool.compared["aten.sum.default"] == 3

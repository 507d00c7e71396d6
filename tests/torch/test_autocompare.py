"""Comparison with the CPU at run time: no false alarm in training, planted faults by name, dumps that replay."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.torch import faulty_vendor

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import ctypes, json, sys
import torch
import torch_dipu
torch_dipu.start()
from models import TASKS
from train import train

debug = torch.dipu.debug
faulty = ctypes.CDLL(sys.argv[1])
found = {}
for name in ["", *sys.argv[2:]]:
    faulty.plant(name.encode())
    for task in TASKS:
        torch.dipu.autocompare(ops=".*")
        train(task, "dipu", 1)
        torch.dipu.autocompare(ops="")
    found[name] = [[row.operator, row.differences, row.runs] for row in debug.comparisons()]
    debug.reset_comparisons()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(libraries: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What autocompare says of training steps with each fault; under "" without any."""
    if not (libraries / "libdiopi_impl.so").exists():
        pytest.skip("droplet is not built")
    library = faulty_vendor.build(tmp_path_factory.mktemp("faulty"), libraries)
    paths = [ROOT / "python" / "torch_dipu", ROOT / "demo"]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(library), *faulty_vendor.FUNCTIONS],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "DIPU_LIBRARY_DIR": str(libraries),
            "DIPU_VENDOR_LIBRARY": str(library),
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    result: dict[str, list[Any]] = json.loads(done.stdout.splitlines()[-1])
    return result


def test_training_steps_give_no_false_alarm(found: dict[str, list[Any]]) -> None:
    assert [row for row in found[""] if row[1]] == []
    assert len(found[""]) >= 40
    assert sum(row[2] for row in found[""]) > 350


def test_planted_faults_are_named(found: dict[str, list[Any]]) -> None:
    named = {name: [row[0] for row in rows if row[1]] for name, rows in found.items() if name}
    reached = {name: operators for name, operators in named.items() if operators}
    assert len(reached) >= 20
    for name, operators in reached.items():
        stem = name.removeprefix("diopi").lower().replace("v2", "")
        words = {operator.removeprefix("aten::").partition(".")[0].replace("_", "") for operator in operators}
        alike = {
            "relu",
            "threshold",
            "convolution",
            "nllloss",
            "mean",
            "fused",
            "norm",
            "embedding",
            "linear",
            "softmax",
        }
        assert any(stem in word or word in stem or any(a in stem and a in word for a in alike) for word in words), (
            name,
            operators,
        )


def test_a_mismatch_is_dumped_and_replayed(torch: Any, run_python: Any, libraries: Path, tmp_path: Path) -> None:
    library = faulty_vendor.build(tmp_path, libraries)
    program = f"""
import ctypes, torch, torch_dipu
torch_dipu.start()
faulty = ctypes.CDLL({str(library)!r})
faulty.plant(b"diopiMul")
torch.dipu.autocompare(ops="mul.*", on_mismatch="dump", folder={str(tmp_path / "out")!r})
x = torch.arange(6, dtype=torch.float32).reshape(2, 3).to("dipu")
y = x.t() * x.t()
torch.dipu.autocompare(ops="")
path = {str(tmp_path / "out" / "mul_Tensor-0.npz")!r}
again = torch.dipu.debug.replay(path)
print(again.operator, again.value, again.index, again.wrong, again.elements, round(again.error, 4))
print(again.what)
faulty.plant(b"")
print(torch.dipu.debug.replay(path))
"""
    done = run_python(program, DIPU_VENDOR_LIBRARY=str(library))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "aten::mul.Tensor output 0 [2, 1] 5 6 0.25",
        "Float[3, 2] strides [1, 3] differs",
        "None",
    ]
    assert "aten::mul.Tensor: output 0: Float[3, 2] strides [1, 3] differs at [2, 1]: 25.25 where the CPU gives 25" in (
        done.stderr
    )


def test_raise_names_the_operator(run_python: Any, libraries: Path, tmp_path: Path) -> None:
    library = faulty_vendor.build(tmp_path, libraries)
    program = f"""
import ctypes, torch, torch_dipu
torch_dipu.start()
ctypes.CDLL({str(library)!r}).plant(b"diopiNeg")
torch.dipu.autocompare(ops="neg", on_mismatch="raise")
try:
    -torch.ones(2, device="dipu")
except RuntimeError as error:
    print(str(error).splitlines()[0])
print(float((-torch.ones(1)).item()))
"""
    done = run_python(program, DIPU_VENDOR_LIBRARY=str(library))
    assert done.stdout.splitlines()[0].startswith(
        "aten::neg: output 0: Float[2] strides [1] differs at [0]: -1.01 where the CPU gives -1 (error 0.00999999, "
    )
    assert done.stdout.splitlines()[1] == "-1.0"

"""The collectives of docs/adding-a-vendor.md: pebble's table, from the page, over a library of its SDK.

The library here has no operator of its own, so that everything but the collectives runs on the CPU.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from diopigen.project import Project
from tests.built import compiled
from tests.e2e.page_vendors import ROOT, diopigen, page_files, page_project

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")

SDK = Path(__file__).parent / "pebble_sdk"
STRICTLY = ("-std=c++17", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror")
RANKS = ROOT / "tests" / "torch" / "distributed"
PROGRAM = """
import torch, torch.distributed as dist
from ranks import DEVICE, RANK, SIZE, join, run_checks

def values(rank, count=70000, dtype=torch.float32):
    return (torch.arange(count) % 7 + rank).to(dtype)

def check_reductions():
    for dtype in (torch.float32, torch.float64, torch.int32, torch.int64, torch.float16):
        for op, wanted in ((dist.ReduceOp.SUM, sum), (dist.ReduceOp.MAX, lambda parts: torch.stack(parts).amax(0))):
            ours = values(RANK, dtype=dtype).to(DEVICE)
            dist.all_reduce(ours, op)
            assert torch.equal(ours.cpu(), wanted([values(rank, dtype=dtype) for rank in range(SIZE)])), (dtype, op)

def check_moves():
    every = torch.empty(SIZE * 70000, device=DEVICE)
    dist.all_gather_into_tensor(every, values(RANK).to(DEVICE))
    assert torch.equal(every.cpu(), torch.cat([values(rank) for rank in range(SIZE)]))
    ours = values(RANK).to(DEVICE)
    dist.broadcast(ours, 2)
    assert torch.equal(ours.cpu(), values(2))
    received = torch.empty(70000, device=DEVICE)
    after, before = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    for work in dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, values(RANK).to(DEVICE), after), dist.P2POp(dist.irecv, received, before)]
    ):
        work.wait()
    assert torch.equal(received.cpu(), values(before))
    parts = torch.empty(SIZE, device=DEVICE)
    dist.all_to_all_single(parts, torch.arange(SIZE, device=DEVICE) * 1.0 + 10 * RANK)
    assert parts.tolist() == [10.0 * rank + RANK for rank in range(SIZE)]

def check_training():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2).to(DEVICE)
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    ddp(values(RANK, 8).reshape(2, 4).to(DEVICE)).sum().backward()
    mean = torch.stack([values(rank, 8).reshape(2, 4).sum(0) for rank in range(SIZE)]).mean(0)
    assert torch.allclose(model.weight.grad.cpu(), mean.expand(2, 4))

def check_what_took_which_way():
    rows = {(row.collective, row.dtype): row for row in torch.dipu.distributed.report()}
    for collective in ("all_reduce", "all_gather", "broadcast", "send", "recv", "all_to_all"):
        assert rows[f"dicl:{collective}", "Float"].way == "device", rows
    assert rows["dicl:all_reduce", "Half"].way == "host", rows

if __name__ == "__main__":
    join("dipu:dicl", timeout=60)
    run_checks(dict(globals()))
    torch.distributed.destroy_process_group()
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A checkout with pebble, whose SDK is there."""
    project = page_project(tmp_path_factory.mktemp("pebble"), "pebble")
    (project.vendors / "pebble" / "sdk").mkdir()
    (project.vendors / "pebble" / "sdk" / "include").symlink_to(SDK)
    return project


@pytest.fixture(scope="module")
def vendor_library(project: Project, libraries: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pebble's device and collectives, and its SDK."""
    out = tmp_path_factory.mktemp("generated")
    assert diopigen(project, "all", "--vendor", "pebble", "--out", str(out)).returncode == 0
    folder, kernels = project.vendors / "pebble", ROOT / "runtime_cpp" / "kernels"
    include = [f"-I{path}" for path in (out / "include", ROOT / "runtime_cpp", kernels, folder, SDK)]
    sources = [folder / "device.cpp", folder / "collectives.cpp", kernels / "core" / "error.cpp", SDK / "pebblecl.cpp"]
    sources += [out / "pebble" / "adaptor" / "abi_record.cpp"]
    return compiled(["g++", *STRICTLY, *include, *sources], "libpebble.so")


def test_nothing_is_found_wrong(project: Project) -> None:
    with (project.vendors / "pebble" / "vendor.yaml").open("a") as file:
        file.write("include_dirs: [sdk/include]\n")
    done = diopigen(project, "lint", "--vendor", "pebble")
    printed = done.stdout + done.stderr
    assert (done.returncode, "vendors/pebble" in printed) == (0, False), printed


def test_the_table_is_short() -> None:
    assert len(page_files("pebble")["collectives.cpp"].splitlines()) < 100


def test_pytorch_runs_them(vendor_library: Path, libraries: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'python' / 'torch_dipu'}{os.pathsep}{RANKS}",
        "DIPU_LIBRARY_DIR": str(libraries),
        "DIPU_VENDOR_LIBRARY": str(vendor_library),
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "OMP_NUM_THREADS": "1",
        "TEST_DEVICES": "1",
        "TEST_REPORT": str(tmp_path),
        "TEST_STORE": str(tmp_path / "store"),
        "WORLD_SIZE": "3",
    }
    ranks = [
        subprocess.Popen(
            [sys.executable, str(program)],
            env={**environment, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(3)
    ]
    try:
        printed = [rank.communicate(timeout=100)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    for number, text in enumerate(printed):
        report = tmp_path / f"report-{number}.json"
        assert report.exists(), text
        found = json.loads(report.read_text())
        assert len(found["done"]) == 4 and not found["failures"], found["failures"]
    assert [rank.returncode for rank in ranks] == [0, 0, 0], printed

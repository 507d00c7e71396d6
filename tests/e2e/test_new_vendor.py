"""`diopigen new-vendor`: the folder is linted, compiled and linked, and PyTorch trains on it, without an edit."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from diopigen.project import Project

ROOT = Path(__file__).resolve().parents[2]
BACKEND = ROOT / "build" / "droplet" / "lib"
LINKED = ("schemas", "templates", "runtime_cpp", "generators", "CMakeLists.txt")
NAME = "pebble2"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A checkout in which the new vendor is the only one."""
    root = tmp_path_factory.mktemp("new-vendor")
    for name in LINKED:
        (root / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "generated" / "include", root / "generated" / "include")
    (root / "vendors").mkdir()
    done = diopigen(root, "new-vendor", NAME)
    assert done.returncode == 0, done.stderr
    return Project(root=root)


def diopigen(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "diopigen", "--project", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_nothing_is_found_wrong(project: Project) -> None:
    done = diopigen(project.root, "lint", "--vendor", NAME)
    printed = done.stdout + done.stderr
    assert (done.returncode, f"vendors/{NAME}" in printed) == (0, False), printed


@pytest.fixture(scope="module")
def library(project: Project) -> Path:
    """Its libdiopi_impl.so, configured and compiled as `make build` does it."""
    cmake = shutil.which("cmake", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if cmake is None or shutil.which("g++") is None:
        pytest.skip("there is no cmake or no g++")
    build = project.root / "build" / NAME
    configure = [cmake, "-S", str(project.root), "-B", str(build), f"-DDIOPI_VENDOR={NAME}"]
    configure += ["-DCMAKE_BUILD_TYPE=Debug", f"-DPython_EXECUTABLE={sys.executable}"]
    for command in (configure, [cmake, "--build", str(build), "--target", "diopi_impl", "--parallel", "2"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return build / "lib" / "libdiopi_impl.so"


def python(library: Path, *arguments: str) -> str:
    """What a program prints that runs on the new vendor, over the PyTorch backend that was built for droplet."""
    if not (BACKEND / "libtorch_dipu.so").exists():
        pytest.skip("torch_dipu is not built")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "python" / "torch_dipu"),
        "DIPU_LIBRARY_DIR": str(BACKEND),
        "DIPU_VENDOR_LIBRARY": str(library),
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "1",
    }
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    if "was built against other headers" in done.stderr:
        pytest.skip("torch_dipu is not built from the headers of today")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_no_kernels_are_compiled_that_nothing_calls(library: Path) -> None:
    """All that stands behind a header of the kernels which its device.cpp includes."""
    objects = (path for path in library.parents[1].rglob("*.o") if "runtime_cpp/kernels" in path.as_posix())
    assert [path.name for path in objects] == ["error.cpp.o"]


def test_ones_plus_one(library: Path) -> None:
    program = 'import torch; print(torch.ones(2, device="dipu") + 1)'
    assert python(library, "-c", program) == "tensor([2., 2.], device='dipu:0')\n"


def test_it_trains_as_the_cpu_does(project: Project, library: Path) -> None:
    printed = python(library, str(project.vendors / NAME / "train.py"))
    loss, calls = printed.splitlines()
    on_chip, on_cpu = (float(word) for word in loss.replace(",", "").split() if word.count(".") == 1)
    assert on_chip == pytest.approx(on_cpu, rel=1e-4) and on_cpu < 30
    assert int(calls.split()[0]) > 1000  # it has no operator of its own


def test_models_of_every_kind_run(library: Path) -> None:
    program = """
import torch
from torch import nn

device = torch.device("dipu")
images = torch.randn(2, 3, 8, 8, device=device)
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5)).to(device)
nn.functional.cross_entropy(model(images), torch.tensor([1, 2], device=device)).backward()
torch.optim.AdamW(model.parameters(), foreach=True).step()
board = torch.zeros(4, 4, device=device)
board[1:3, ::2] = torch.tensor([[1, 2], [3, 4]], device=device)  # strides and a conversion
print(board.t().contiguous().to(torch.int64).cpu().tolist())
words = torch.randn(2, 3, 8, device=device)
print(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).to(device)(words).isfinite().all().item())
"""
    rows = "[[0, 1, 3, 0], [0, 0, 0, 0], [0, 2, 4, 0], [0, 0, 0, 0]]"
    assert python(library, "-c", program).splitlines() == [rows, "True"]

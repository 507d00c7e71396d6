"""The device for the tests: the built libraries, over the vendor that was built or over a fake one."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests import processes
from tests.built import compiled
from tests.processes import ROOT
from tests.torch.sanitized import LEFT_OUT

_HERE = Path(__file__).parent
_START = "import torch, torch_dipu; torch_dipu.start()\n"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips what a sanitized backend does otherwise on purpose."""
    left_out = LEFT_OUT.get(os.environ.get("DIOPI_SANITIZER", ""), {})
    for item in items if left_out else ():
        name, _, _ = item.name.partition("[")
        if item.path.is_relative_to(_HERE):
            test = f"{item.path.relative_to(_HERE).as_posix()}::{name}"
            if test in left_out:
                item.add_marker(pytest.mark.skip(reason=left_out[test]))


@pytest.fixture(scope="session")
def fake_vendor() -> Callable[..., Path]:
    """Compiles tests/torch/fake_vendor.cpp with the given definitions."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++")

    def build(*definitions: str) -> Path:
        include = ROOT / "generated" / "include"
        flags = ["-std=c++17", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", f"-I{include}"]
        macros = [f"-D{name}" for name in definitions]
        return compiled(["g++", *flags, *macros, ROOT / "tests" / "torch" / "fake_vendor.cpp"], "libfake.so")

    return build


@pytest.fixture
def run_python(libraries: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a program in a process of its own, with the environment variables given as keywords."""
    return partial(processes.run_python, "-c", timeout=120)


@pytest.fixture
def torch_tests(libraries: Path, tmp_path: Path) -> Callable[..., tuple[subprocess.CompletedProcess[str], Any]]:
    """Runs `op-tools torch-tests` on dipu with one process; what it said, and its report, {} where there is none."""
    report = tmp_path / "report.json"

    def run(*words: str) -> tuple[subprocess.CompletedProcess[str], Any]:
        report.unlink(missing_ok=True)
        command = ["-m", "op_tools", "torch-tests", "--device", "dipu", "--jobs", "1", "--out", str(report)]
        done = processes.run_warm(*command, *words, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
        return done, json.loads(report.read_text()) if report.exists() else {}

    return run


@pytest.fixture
def droplet(libraries: Path) -> Callable[..., Any]:
    """Runs a program on droplet in a process of its own, after the backend's start."""
    if not (libraries / "libdroplet_rt.so").exists():
        pytest.skip("droplet is not built")

    def run(program: str, **environment: str) -> Any:
        environment["DIPU_VENDOR_LIBRARY"] = str(libraries / "libdiopi_impl.so")
        return processes.run_warm("-c", _START + program, timeout=120, **environment)

    return run


@pytest.fixture(scope="session")
def torch(libraries: Path, fake_vendor: Callable[..., Path]) -> Any:
    """torch with the device dipu."""
    if "DIPU_VENDOR_LIBRARY" not in os.environ and not (libraries / "libdiopi_impl.so").exists():
        os.environ["DIPU_VENDOR_LIBRARY"] = str(fake_vendor("FAKE_FORM=1"))
    os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    import torch as module

    import torch_dipu

    torch_dipu.start()
    return module

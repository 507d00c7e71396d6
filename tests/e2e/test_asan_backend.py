"""The PyTorch backend under AddressSanitizer: what a kernel does outside of its tensors is seen and named there, too.

Each tensor has a block of the chip of its own then, and each value of a compiled program.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, Built, built
from tests.e2e.memory_faults import CHOICE, FAULTS
from tests.processes import PACKAGES

pytestmark = [
    pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++"),
    pytest.mark.deep(
        "sanitizers", "tests/cpp/test_droplet.py and test_standalone.py: the chip and the standalone run time"
    ),
]

EAGER = """
import torch, torch_dipu
torch_dipu.start()
x = torch.randn(8, 33, device="dipu")
for _ in range(2):
    print(torch.softmax(x, -1).sum().item())
"""

# The fault is planted into the text of the program: a wrong index of the first kernel.
COMPILED = """
import dataclasses, os, torch, torch_dipu
from dicp.target import Target
torch_dipu.start()
emit = Target.emit
before, after = os.environ["PLANTED"].split("|")
def planted(self, program, watched):
    emitted = emit(self, program, watched)
    assert before in emitted.source
    return dataclasses.replace(emitted, source=emitted.source.replace(before, after, 1))
Target.emit = planted
function = lambda x: ((x * 2).exp() + 1).cumsum(-1).tanh()
run = torch.compile(function, backend="diopi", fullgraph=True)
x = torch.randn(8, 33, device="dipu")
print(run(x).sum().item())
"""
LOAD, STORE = "(p1_row[j])", "p0_row[j] ="
PROGRAM_FAULTS = {
    "read before": f"{LOAD}|(p1_row[j - 1])",
    "read behind": f"{LOAD}|(p1_row[j + 1])",
    "read 600 bytes behind": f"{LOAD}|(p1_row[j + 150])",
    "read 40 kB behind": f"{LOAD}|(p1_row[j + 10240])",
    "read 40 kB before": f"{LOAD}|(p1_row[j - 10240])",
    "write before": f"{STORE}|p0_row[j - 1] =",
    "write behind": f"{STORE}|p0_row[j + 1] =",
}


@pytest.fixture(scope="module")
def backend(sanitized: Built) -> Built:
    """The PyTorch backend beside the sanitized chip."""
    return built("asan", backend=True)


def _run(backend: Built, program: str, tmp_path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "LD_PRELOAD": backend.preload,
        "DICP_CACHE": str(tmp_path),
        "DIPU_LIBRARY_DIR": str(backend.folder / "lib"),
        "PYTHONPATH": os.pathsep.join(map(str, PACKAGES)),
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
    }
    command = [sys.executable, "-c", program]
    return subprocess.run(
        command, cwd=ROOT, env=environment | variables, capture_output=True, text=True, timeout=600, check=False
    )


@pytest.mark.parametrize("fault", ["", *FAULTS])
def test_faults_of_kernels_are_seen_through_the_backend(fault: str, backend: Built, planted: Path, tmp_path: Path):
    vendor = str(planted / "libdiopi_impl.so")
    done = _run(backend, EAGER, tmp_path, **{CHOICE: fault, "DIPU_VENDOR_LIBRARY": vendor})
    assert (done.returncode != 0) == bool(fault), done.stderr[-3000:]
    summary = done.stderr.partition("SUMMARY: AddressSanitizer: use-after-poison ")[2]
    assert ("softmax.cpp:" in summary) == bool(fault), done.stderr[-3000:]


@pytest.mark.parametrize("fault", ["", *PROGRAM_FAULTS])
def test_faults_of_compiled_programs_are_seen(fault: str, backend: Built, tmp_path: Path):
    done = _run(backend, COMPILED, tmp_path, PLANTED=PROGRAM_FAULTS.get(fault, f"{LOAD}|{LOAD}"))
    assert (done.returncode != 0) == bool(fault), done.stderr[-3000:]
    summary = done.stderr.partition("SUMMARY: AddressSanitizer: use-after-poison ")[2]
    assert ("program.cpp:" in summary) == bool(fault), done.stderr[-3000:]

"""The end of a process: nothing aborts, whatever the device was doing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
START = "import torch, torch_dipu; torch_dipu.start()\n"
LAST_WORDS = {
    "a backward pass": "x = torch.ones(4, device='dipu', requires_grad=True); (x * 2.0).sum().backward()",
    "work on a stream": "s = torch.dipu.Stream()\nwith torch.dipu.stream(s): x = torch.ones(500, 500, device='dipu') @ "
    "torch.ones(500, 500, device='dipu')",
    "operators on daemon threads": """
import threading
def run():
    x = torch.randn(64, 64, device="dipu", requires_grad=True)
    while True:
        (x @ x).relu().sum().backward()
        ran.set()
ran = threading.Event()
for _ in range(2): threading.Thread(target=run, daemon=True).start()
assert ran.wait(100)""",
    "a copy": "x = torch.ones(10_000).pin_memory().to('dipu', non_blocking=True)",
}


@pytest.mark.parametrize("last", [*LAST_WORDS])
def test_the_process_ends_well(libraries: Path, last: str) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(ROOT / "python" / "torch_dipu"), os.environ.get("PYTHONPATH", ""))),
        "DIPU_LIBRARY_DIR": str(libraries),
        "DROPLET_ASYNC": "0" if last == "a backward pass" else "1",
    }
    # the faults that this would show do not come every time
    running = [
        subprocess.Popen([sys.executable, "-c", START + LAST_WORDS[last]], env=environment, stderr=subprocess.PIPE)
        for _ in range(4 if last in ("a backward pass", "operators on daemon threads") else 1)
    ]
    told = [process.communicate(timeout=120)[1] for process in running]
    assert [process.returncode for process in running] == [0] * len(running), told

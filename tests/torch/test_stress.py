"""Threads on several streams and devices at once: right results, no memory left over, in both modes of droplet."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("asynchronous", ["0", "1"])
def test_threads_and_streams(libraries: Path, asynchronous: str) -> None:
    if not (libraries / "libdroplet_rt.so").exists():
        pytest.skip("droplet is not built")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "python" / "torch_dipu"),
        "DIPU_LIBRARY_DIR": str(libraries),
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "DROPLET_ASYNC": asynchronous,
        "DROPLET_POISON": "1",
    }
    command = [sys.executable, str(ROOT / "benchmarks" / "stress.py"), "--seconds", "3"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    told = json.loads(done.stdout)
    assert done.returncode == 0 and told["rounds"] > 100, done.stdout + done.stderr
    assert (told["wrong"], told["errors"], told["leaked"], told["kept"]) == (0, [], [0, 0], [0, 0])

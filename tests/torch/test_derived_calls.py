"""What derived operators call is what they list: where a chip lacks some of it, the fallback to the CPU is better."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("expecttest")  # torch's sample inputs import it

ROOT = Path(__file__).resolve().parents[2]


def test_what_is_called_is_listed(libraries: Path) -> None:
    environment = {**os.environ, "DIPU_LIBRARY_DIR": str(libraries), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    environment["PYTHONPATH"] = os.pathsep.join(
        str(ROOT / name) for name in (".", "python/op_tools", "python/torch_dipu")
    )
    command = [sys.executable, "-m", "tools.derived_calls", "trunc", "nn.functional.hardshrink"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    *unseen, unreached = done.stdout.splitlines()
    assert "hardshrink did not call sign" in unseen
    assert unreached.startswith("no sample reaches ") and " trunc," not in unreached and " eye.out" in unreached

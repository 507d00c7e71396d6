"""Processes of their own for the tests of the tools: on the CPU, and on dipu where it is built."""

import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.processes import run_warm as run

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run_python(tmp_path: Path) -> Run:
    """Runs `python WORDS...` in the test's folder, with the environment variables given as keywords."""
    return partial(run, folder=tmp_path, TORCH_DEVICE_BACKEND_AUTOLOAD="0")


@pytest.fixture
def on_dipu(libraries: Path, run_python: Run) -> Run:
    """The same for programs that start dipu."""
    return run_python

"""Sorted places and running sums, by threads of hosts, by teams, and with a vendor's library that sorts."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "runtime_cpp" / "kernels"
PARTS = Path(__file__).parent / "kernels"
SOURCES = (PARTS / "sorted_places.cpp", PARTS / "host_runtime.cpp", KERNELS / "core" / "error.cpp")


@pytest.mark.parametrize("launcher", ["launch/host.h", "host_teams.h", "library_sorts.h"])
def test_places_and_sums(launcher: str, tmp_path: Path) -> None:
    include = [f"-I{folder}" for folder in (ROOT / "generated" / "include", ROOT / "runtime_cpp", KERNELS, PARTS)]
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", f'-DDIOPI_LAUNCHER_HEADER="{launcher}"']
    program = tmp_path / "sorted_places"
    done = subprocess.run(
        ["g++", *flags, *include, *SOURCES, "-o", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)

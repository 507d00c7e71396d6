"""What GPUs run of elementwise kernels, on a host: each element is written once, from the right places."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "runtime_cpp" / "kernels"
SOURCES = (Path(__file__).parent / "kernels" / "device_code.cpp", KERNELS / "core" / "error.cpp")


def test_the_threads_of_a_device_cover_all_elements(tmp_path: Path) -> None:
    include = [f"-I{folder}" for folder in (ROOT / "generated" / "include", ROOT / "runtime_cpp", KERNELS)]
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-fno-strict-aliasing", "-fsanitize=undefined,address"]
    program = tmp_path / "device_code"
    done = subprocess.run(
        ["g++", *flags, *include, *SOURCES, "-o", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)

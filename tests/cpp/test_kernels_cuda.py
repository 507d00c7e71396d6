"""Every kernel family compiles for a GPU too: the sources hold nothing that only a CPU can do."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "kernels"))
from portable import KERNELS, include_dir

NVCC = shutil.which("nvcc")
SAMPLES = Path(__file__).parent / "kernels" / "elementwise_samples.cpp"
SOURCES = [*sorted(KERNELS.glob("*.cpp")), *sorted((KERNELS / "core").glob("*.cpp")), SAMPLES]


@pytest.mark.skipif(NVCC is None, reason="there is no nvcc")
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_compiles_with_nvcc_without_a_warning(source: Path, tmp_path: Path) -> None:
    include = ["-I", str(include_dir()), "-I", str(KERNELS)]
    options = ["-x", "cu", "-std=c++17", "--extended-lambda", "--Ofast-compile", "max"]
    command = [str(NVCC), *options, *include, "-c", str(source), "-o", str(tmp_path / "kernel.o")]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "warning" not in result.stderr, result.stderr

"""The functions that kernels use for float on a host: how exact they are, and that their loops become vector code."""

import re
import subprocess
from pathlib import Path

import pytest

KERNELS = Path(__file__).resolve().parents[2] / "runtime_cpp" / "kernels"
SWEEP = Path(__file__).parent / "kernels" / "vector_math_sweep.cpp"
FUNCTIONS = (
    *("exp", "expm1", "log", "log2", "log10", "log1p", "tanh", "sinh", "cosh", "asin", "acos", "atan"),
    *("asinh", "acosh", "atanh", "erf", "sin", "cos", "tan"),
)
WORST = 3.0  # ulp; the suite allows an elementwise result 5
FLAGS = (
    "-O3",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-std=c++17",
    "-Wall",
    "-Wextra",
    "-Werror",
)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The program, and what the compiler says of the loops that it made vector code of."""
    folder = tmp_path_factory.mktemp("sweep")
    command = ["g++", *FLAGS, "-I", str(KERNELS), str(SWEEP), "-o"]
    subprocess.run([*command, str(folder / "sweep")], check=True)
    told = subprocess.run(
        [*command, str(folder / "vectors.o"), "-c", "-march=x86-64-v2", "-fopt-info-vec-optimized"],
        check=True,
        capture_output=True,
        text=True,
    )
    return folder / "sweep", told.stderr


def test_every_float_is_within_a_few_ulp(compiled: tuple[Path, str]) -> None:
    lines = subprocess.run([str(compiled[0])], check=True, capture_output=True, text=True).stdout.split("\n")[:-1]
    assert tuple(line.split()[0] for line in lines) == FUNCTIONS
    assert [line for line in lines if float(line.split()[1]) > WORST or line.split()[2] != "0"] == []


def test_loops_over_them_become_vector_code(compiled: tuple[Path, str]) -> None:
    text = SWEEP.read_text().split("\n")
    places = {
        (number, line.index(f"FUNCTION({name})") + 1)
        for number, line in enumerate(text, 1)
        for name in FUNCTIONS
        if f"FUNCTION({name})" in line
    }
    assert len(places) == len(FUNCTIONS)
    vectorized = re.findall(r"sweep\.cpp:(\d+):(\d+): optimized: loop vectorized", compiled[1])
    assert places - {(int(line), int(column)) for line, column in vectorized} == set()

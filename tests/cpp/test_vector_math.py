"""How exact the functions are that kernels use for float on a host."""

import subprocess
from pathlib import Path

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


def test_every_float_is_within_a_few_ulp(tmp_path: Path) -> None:
    sweep = tmp_path / "sweep"
    subprocess.run(["g++", *FLAGS, "-I", str(KERNELS), str(SWEEP), "-o", str(sweep)], check=True)
    lines = subprocess.run([str(sweep)], check=True, capture_output=True, text=True).stdout.split("\n")[:-1]
    assert tuple(line.split()[0] for line in lines) == (*FUNCTIONS, "usual")
    assert [line for line in lines if float(line.split()[1]) > WORST or line.split()[2] != "0"] == []

"""Hot loops of the kernels become vector code for every processor, as compilers report it.

They are the loops that DIOPI_VECTOR_LOOP marks, and loops over each function of vector_math.h.
"""

import os
import platform
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "runtime_cpp" / "kernels"
SAMPLES = Path(__file__).parent / "kernels"
SWEEP = SAMPLES / "vector_math_sweep.cpp"
CMAKE = ROOT / "runtime_cpp" / "cmake" / "DiopiVendor.cmake"
INCLUDED = ("generated/include", "runtime_cpp", "runtime_cpp/kernels")
MARK = "DIOPI_VECTOR_LOOP"
TARGETS = {level: ("x86_64", f"-march={level}") for level in ("x86-64-v2", "x86-64-v3", "x86-64-v4")}
TARGETS |= {"native": (platform.machine(), "-march=native"), "aarch64": ("aarch64", "-march=armv8-a")}
# Which source shows the loops of a header.
SHOWS = {
    "copy/convert.cpp": (),
    "elementwise/complex.cpp": (),
    "elementwise/division.cpp": ("elementwise/elementwise.h",),
    "elementwise/equal.cpp": (),
    "elementwise/foreach.cpp": ("optimizer/lists.h",),
    "feature_maps/resampling.cpp": (),
    "normalization/batch_norm.cpp": ("normalization/channels.h",),
    "normalization/layer_norm.cpp": (),
    "normalization/normalization.cpp": (),
    "normalization/softmax.cpp": ("space/strides.h",),
    "optimizer/optimizer.cpp": ("optimizer/step.h",),
    "random/random.cpp": (),
    "reduction/reductions_positions.cpp": (),
}
REPORTS = {
    "g++": ("-fopt-info-vec-optimized", r"^(\S+?):(\d+):(\d+): optimized: loop vectorized"),
    "clang++": ("-Rpass=loop-vectorize", r"^(\S+?):(\d+):(\d+): remark: vectorized loop"),
}


FEW = ("elementwise/equal.cpp", "random/random.cpp", "reduction/reductions_positions.cpp")
MORE = pytest.mark.deep("matrix", "a few sources, and functions of floats, by g++ for x86-64-v2")


def cases() -> list[object]:
    """Each compiler for each processor; `make test` has g++ for the least of them."""
    pairs = [(compiler, target) for compiler in REPORTS for target in TARGETS]
    return [pytest.param(*pair, marks=() if pair == ("g++", "x86-64-v2") else MORE) for pair in pairs]


def command(compiler: str, target: str) -> list[str]:
    """What compiles for the target as the build compiles kernels; the test is skipped where nothing does."""
    machine, march = TARGETS[target]
    foreign = machine != platform.machine()
    name = f"{machine}-linux-gnu-{compiler}" if foreign and compiler == "g++" else compiler
    if shutil.which(name) is None or (foreign and not Path(f"/usr/{machine}-linux-gnu").exists()):
        pytest.skip(f"there is no {name} for {machine}")
    other = [f"--target={machine}-linux-gnu"] if foreign and compiler == "clang++" else []
    launcher = KERNELS / "launch" / "host.h"
    return [name, *other, march, "-std=c++17", *kernel_options(), f'-DDIOPI_LAUNCHER_HEADER="{launcher}"']


@cache
def kernel_options() -> tuple[str, ...]:
    found = re.search(r"target_compile_options\(diopi_kernels PRIVATE \S*:(-O3)> ([^$]*)", CMAKE.read_text())
    assert found is not None
    return (found[1], *found[2].split())


def vectorized(compiler: str, target: str, source: Path) -> set[tuple[Path, int, int]]:
    """File, line and column of the loops that the compiler made vector code of."""
    option, pattern = REPORTS[compiler]
    include = [word for folder in INCLUDED for word in ("-I", str(ROOT / folder))]
    words = [*command(compiler, target), *include, option, "-c", str(source), "-o", os.devnull]
    told = subprocess.run(words, check=True, capture_output=True, text=True).stderr
    found = re.findall(pattern, told, re.MULTILINE)
    return {(Path(path).resolve(), int(line), int(column)) for path, line, column in found}


def marked(path: Path) -> set[int]:
    """Lines with a loop behind a mark."""
    lines = path.read_text().split("\n")
    marks = [number for number, line in enumerate(lines, 1) if line.strip() == MARK]
    assert all(lines[number].strip().startswith("for (") for number in marks), path
    return {number + 1 for number in marks}


def test_each_marked_loop_is_compiled_here() -> None:
    files = {path.relative_to(KERNELS).as_posix() for path in KERNELS.glob("*/*") if marked(path)}
    assert files == {name for source, headers in SHOWS.items() for name in (source, *headers) if marked(KERNELS / name)}


@pytest.mark.parametrize(("compiler", "target"), cases())
@pytest.mark.parametrize("source", [pytest.param(name, marks=() if name in FEW else MORE) for name in SHOWS])
def test_marked_loops_become_vector_code(compiler: str, target: str, source: str) -> None:
    found = {(path, line) for path, line, _ in vectorized(compiler, target, KERNELS / source)}
    files = [KERNELS / name for name in (source, *SHOWS[source])]
    missed = {f"{path.name}:{line}" for path in files for line in marked(path) if (path, line) not in found}
    assert missed == set()


@pytest.mark.parametrize(("compiler", "target"), cases())
def test_loops_over_functions_of_floats_become_vector_code(compiler: str, target: str) -> None:
    lines = SWEEP.read_text().split("\n")
    places = {
        (SWEEP, number, found.start() + 1): found[1]
        for number, line in enumerate(lines, 1)
        for found in re.finditer(r"(?<!define )FUNCTION\((\w+)\)", line)
    }
    assert len(places) > 15
    found = vectorized(compiler, target, SWEEP)
    assert {name for place, name in places.items() if place not in found} == set()

"""Compilers besides the one that builds: each unit of droplet, of the backend and of what is generated for them."""

import os
import shutil
from pathlib import Path

import pytest

from tests.compile.units import complaints, sample, units

COMPILERS = (*("clang++-14", "clang++-19"), *(f"g++-{release}" for release in (11, 12, 13, 14)))
ARM = "aarch64-linux-gnu-g++"
BUILDS = {"droplet": "-DDIOPI_VENDOR=droplet", "torch_dipu": "-DDIOPI_TORCH=ONLY"}
deep = pytest.mark.deep("matrix", "a unit of each part, by one other compiler")


def require(compiler: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    if shutil.which("ninja") is None:
        pytest.skip("there is no ninja")


@deep
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_each_unit(compiler: str, build: str, tmp_path: Path) -> None:
    require(compiler)
    assert complaints(units(compiler, tmp_path, BUILDS[build]), "-fsyntax-only") == ""


@deep
def test_kernels_for_arm(tmp_path: Path) -> None:
    require(ARM)
    found = [unit for unit in units(ARM, tmp_path, BUILDS["droplet"]) if "/kernels/" in unit.name]
    assert len(found) > 100
    # g++ notes how structures were passed before 2020
    assert complaints(found, "-O0", "-Wno-psabi", "-o", os.devnull) == ""


# Adaptor, portable and generated kernels, the run time, the chip.
SAMPLE = (
    *(
        "runtime_cpp/adaptor/trace.cpp",
        "normalization/softmax.cpp",
        "reduction/vector_norm.cpp",
        "optimizer/optimizer.cpp",
    ),
    *("kernels/elementwise_logic.cpp", "adaptor/adaptor_pooling.cpp", "standalone/storage.cpp", "runtime/device.cpp"),
)


def test_a_unit_of_each_part(tmp_path: Path) -> None:
    """By the first compiler of another kind or release than the usual one."""
    usual = Path(shutil.which("g++") or "g++").resolve().name
    other = next((name for name in COMPILERS if shutil.which(name) and not usual.endswith(name)), None)
    if other is None:
        pytest.skip(f"there is none of {', '.join(COMPILERS)} besides {usual}")
    require(other)
    assert complaints(sample(units(other, tmp_path, BUILDS["droplet"]), *SAMPLE), "-fsyntax-only") == ""

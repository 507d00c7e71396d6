"""What `find_package(Diopi <version>)` takes, and that every package has the version of CMake's project."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERSION = "0.1.0"
PACKAGES = (".", "python/torch_dipu", *(path.parent.as_posix() for path in ROOT.glob("python/torch_dipu_*/*.toml")))
METADATA = """
import sys, tomllib
from importlib import import_module
backend = tomllib.load(open("pyproject.toml", "rb"))["build-system"]["build-backend"]
print(import_module(backend).prepare_metadata_for_build_wheel(sys.argv[1]))
"""


def configure(folder: Path, wanted: str) -> subprocess.CompletedProcess[str]:
    text = f"cmake_minimum_required(VERSION 3.21...4.0)\nproject(user LANGUAGES NONE)\nfind_package(Diopi {wanted})\n"
    (folder / "CMakeLists.txt").write_text(text + "message(STATUS \"found '${Diopi_VERSION}'\")\n", encoding="utf-8")
    command = ["cmake", "-S", folder, "-B", folder / "build", f"-DDiopi_DIR={ROOT}/runtime_cpp/cmake"]
    command += [f"-DPython_EXECUTABLE={sys.executable}"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("wanted", ["", "0.1", "0.1.0 EXACT"])
def test_a_version_that_fits_is_found(tmp_path: Path, wanted: str) -> None:
    done = configure(tmp_path, f"{wanted} REQUIRED")
    assert done.returncode == 0 and f"-- found '{VERSION}'" in done.stdout, done.stderr


@pytest.mark.parametrize("wanted", ["0.2", "0.1.1", "1", "0.0"])
def test_another_version_is_refused(tmp_path: Path, wanted: str) -> None:
    done = configure(tmp_path, f"{wanted} REQUIRED")
    assert done.returncode == 1
    assert f"DiopiConfig.cmake, version: {VERSION}" in re.sub(r"\s+", " ", done.stderr)


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_have_its_version(package: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", METADATA, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT / package, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"\nVersion: {VERSION}\n" in next(tmp_path.glob("*.dist-info/METADATA")).read_text(encoding="utf-8")

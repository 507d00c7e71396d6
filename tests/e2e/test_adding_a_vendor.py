"""The vendor of docs/adding-a-vendor.md: its files are taken from the page, generated for, compiled and linked."""

import shutil
import subprocess
from pathlib import Path

import pytest

from diopigen.project import Project
from tests.e2e.page_vendors import ROOT, diopigen, page_project

STRICTLY = ("-std=c++17", "-fPIC", "-Wall", "-Wextra", "-Werror")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A checkout in which pebble is the only vendor."""
    project = page_project(tmp_path_factory.mktemp("pebble"), "pebble")
    (project.vendors / "pebble" / "collectives.cpp").unlink()  # a later section adds it
    return project


def test_the_page_has_every_file(project: Project) -> None:
    folder = project.vendors / "pebble"
    found = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    assert found == [
        "CMakeLists.txt",
        "convert_config.yaml",
        "device.cpp",
        "functions/silu.cpp",
        "launcher.h",
        "vendor.yaml",
    ]


def test_nothing_is_found_wrong(project: Project) -> None:
    done = diopigen(project, "lint", "--vendor", "pebble")
    printed = done.stdout + done.stderr
    assert (done.returncode, "vendors/pebble" in printed) == (0, False), printed


def test_its_own_function_is_found_and_converted_for(project: Project) -> None:
    done = diopigen(project, "explain", "diopiSilu", "--vendor", "pebble")
    assert done.returncode == 0
    assert "vendors/pebble/functions/silu.cpp" in done.stdout
    assert "vendors/pebble/convert_config.yaml" in done.stdout


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
def test_its_sources_compile_and_link(project: Project, tmp_path: Path) -> None:
    assert diopigen(project, "all", "--vendor", "pebble", "--out", str(tmp_path)).returncode == 0
    folder, kernels = project.vendors / "pebble", ROOT / "runtime_cpp" / "kernels"
    include = [f"-I{path}" for path in (tmp_path / "include", ROOT / "runtime_cpp", kernels, folder)]
    sources = [folder / "device.cpp", folder / "functions" / "silu.cpp", kernels / "core" / "error.cpp"]
    sources += [tmp_path / "pebble" / "adaptor" / "abi_record.cpp"]
    library = tmp_path / "libdiopi_impl.so"
    command = ["g++", *STRICTLY, *include, "-shared", "-o", str(library), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

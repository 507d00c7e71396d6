"""The vendor of docs/adding-a-vendor.md: its files are taken from the page, generated for, compiled and linked."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from diopigen.project import Project

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "adding-a-vendor.md"
FILES = re.compile(r"```\w+\n(?:#|//) (vendors/pebble/[\w./]+)[^\n]*\n(.*?)```", re.DOTALL)
LINKED = ("schemas", "templates", "runtime_cpp", "generators", "CMakeLists.txt")
STRICTLY = ("-std=c++17", "-fPIC", "-Wall", "-Wextra", "-Werror")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A checkout in which pebble is the only vendor."""
    root = tmp_path_factory.mktemp("pebble")
    for name in LINKED:
        (root / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "generated" / "include", root / "generated" / "include")
    for path, text in FILES.findall(PAGE.read_text(encoding="utf-8")):
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return Project(root=root)


def diopigen(project: Project, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "diopigen", "--project", str(project.root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


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

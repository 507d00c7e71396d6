"""The golden sources of the miniature compile: what a reviewer approves there is what a compiler takes."""

import shutil
import subprocess
from pathlib import Path

import pytest

from diopigen.project import Project

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
EXPECTED = GOLDEN / "expected"
VENDOR_SOURCES = sorted((*EXPECTED.glob("*/adaptor/*.cpp"), *EXPECTED.glob("*/kernels/*.cpp")))
OWN_SOURCES = sorted((GOLDEN / "project").rglob("*.cpp"))
STRICTLY = ("-Wall", "-Wextra", "-Werror", "-fsyntax-only")

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")


@pytest.fixture(scope="session")
def headers(checkout: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The miniature's include folder: its own operators beside the real run-time headers."""
    folder = tmp_path_factory.mktemp("include")
    shutil.copytree(checkout.generated / "include" / "diopi", folder / "diopi")
    shutil.copy(EXPECTED / "include" / "diopi" / "functions.h", folder / "diopi" / "functions.h")
    return folder


def complaints(source: Path, *flags: str) -> str:
    """What g++ says to the source; empty if it is content."""
    done = subprocess.run(["g++", *STRICTLY, *flags, str(source)], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr


def run_time(checkout: Project, headers: Path) -> tuple[str, ...]:
    return ("-std=c++17", *(f"-I{folder}" for folder in (headers, checkout.runtime, checkout.runtime / "kernels")))


@pytest.mark.parametrize("source", VENDOR_SOURCES, ids=lambda path: path.relative_to(EXPECTED).as_posix())
def test_a_vendors_source(source: Path, checkout: Project, headers: Path) -> None:
    assert complaints(source, *run_time(checkout, headers)) == ""


@pytest.mark.parametrize("source", OWN_SOURCES, ids=lambda path: path.stem)
def test_a_source_of_the_miniature(source: Path, checkout: Project, headers: Path) -> None:
    assert complaints(source, *run_time(checkout, headers)) == ""


def test_the_headers_suit_each_other(headers: Path) -> None:
    for language, standard in (("c", "c11"), ("c++", "c++11")):
        flags = ("-x", language, f"-std={standard}", "-Wpedantic", f"-I{headers}")
        assert complaints(headers / "diopi" / "functions.h", *flags) == ""


def test_the_wrappers(checkout: Project, headers: Path, tmp_path: Path) -> None:
    """All in one source: PyTorch's headers take far longer than what is compiled here."""
    torch = pytest.importorskip("torch")
    wrappers = sorted((EXPECTED / "chip" / "aten").glob("*.cpp"))
    source = tmp_path / "wrappers.cpp"
    source.write_text("".join(f'#include "{path}"\n' for path in wrappers), encoding="utf-8")
    package = Path(torch.__file__).parent / "include"
    include = [f"-I{checkout.runtime / 'torch'}", f"-I{headers}"]
    include += ["-isystem", str(package), "-isystem", str(package / "torch/csrc/api/include")]
    assert wrappers
    assert complaints(source, "-std=c++20", "-DAT_PER_OPERATOR_HEADERS", *include) == ""

"""The golden sources of the miniature compile: what a reviewer approves there is what a compiler takes."""

import shutil
import subprocess
from pathlib import Path

import pytest

from diopigen.project import Project

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
EXPECTED = GOLDEN / "expected"
VENDOR_SOURCES = sorted((*EXPECTED.glob("*/adaptor/*.cpp"), *EXPECTED.glob("*/kernels/*.cpp")))
CALLING = GOLDEN / "project" / "vendors" / "mirror"  # its functions call PyTorch
OWN_SOURCES = sorted(path for path in (GOLDEN / "project").rglob("*.cpp") if CALLING not in path.parents)
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


def with_torch(sources: list[Path], include: tuple[Path, ...], folder: Path) -> str:
    """What g++ says to all of them in one source: PyTorch's headers take far longer than what is compiled here."""
    torch = pytest.importorskip("torch")
    whole = folder / "whole.cpp"
    whole.write_text("".join(f'#include "{path}"\n' for path in sources), encoding="utf-8")
    package = Path(torch.__file__).parent / "include"
    flags = [f"-I{path}" for path in include]
    flags += ["-isystem", str(package), "-isystem", str(package / "torch/csrc/api/include")]
    assert sources
    return complaints(whole, "-std=c++20", "-DAT_PER_OPERATOR_HEADERS", *flags)


def test_the_wrappers(checkout: Project, headers: Path, tmp_path: Path) -> None:
    wrappers = sorted((EXPECTED / "torch_dipu" / "aten").glob("*.cpp"))
    assert with_torch(wrappers, (checkout.runtime / "torch", headers), tmp_path) == ""


def test_the_calls_of_pytorch(checkout: Project, headers: Path, tmp_path: Path) -> None:
    calls = sorted((EXPECTED / "mirror" / "calls").glob("*.cpp")) + sorted(CALLING.rglob("*.cpp"))
    assert with_torch(calls, (checkout.vendors / "torch", headers), tmp_path) == ""

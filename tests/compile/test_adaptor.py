"""Everything that is generated for droplet's adaptor compiles alone and agrees with the headers."""

import shutil
import subprocess
from pathlib import Path

import pytest
from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.project import Project
from diopigen.targets import adaptor, header
from diopigen.targets.output import renderer

FLAGS = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")


@pytest.fixture(scope="module")
def generated(checkout: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The headers and droplet's adaptor, freshly generated."""
    folder = tmp_path_factory.mktemp("droplet")
    diagnostics = Diagnostics()
    program = pipeline.contract(checkout, diagnostics)
    assert program is not None
    program = pipeline.with_vendor(program, checkout, "droplet", diagnostics)
    assert program.plans
    render = renderer(checkout.templates)
    for output in (*header.outputs(program, render), *adaptor.outputs(program, render)):
        path = folder / output.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(output.text, encoding="utf-8")
    return folder


def complaints(checkout: Project, folder: Path, source: Path, *extra: str) -> str:
    include = [f"-I{folder / 'include'}", f"-I{checkout.runtime}"]
    command = ["g++", *FLAGS, *include, *extra, str(source)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


def test_each_source_alone(checkout: Project, generated: Path) -> None:
    sources = sorted((generated / "adaptor").glob("*.cpp"))
    assert {"primitives.cpp", "abi_record.cpp", "adaptor_arithmetic.cpp"} <= {s.name for s in sources}
    assert {s.name: text for s in sources if (text := complaints(checkout, generated, s))} == {}


def test_definitions_are_those_that_the_headers_declare(checkout: Project, generated: Path) -> None:
    headers = [f for name in ("functions", "functions_ext") for f in ("-include", f"diopi/{name}.h")]
    for source in sorted((generated / "adaptor").glob("adaptor_*.cpp")):
        assert complaints(checkout, generated, source, *headers) == ""


def test_another_signature_would_be_noticed(checkout: Project, generated: Path, tmp_path: Path) -> None:
    source = tmp_path / "adaptor_activation.cpp"
    text = (generated / "adaptor" / source.name).read_text(encoding="utf-8")
    changed = text.replace("diopiRelu(diopiContextHandle_t ctx, diopiTensorHandle_t out", "diopiRelu(int out")
    assert changed != text
    source.write_text(changed, encoding="utf-8")
    assert "diopiRelu" in complaints(checkout, generated, source, "-include", "diopi/functions.h")

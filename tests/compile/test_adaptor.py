"""Everything that is generated for droplet's adaptor compiles alone and agrees with the headers."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from diopigen import pipeline
from diopigen.diagnostics import Diagnostics, Severity
from diopigen.model.program import Program
from diopigen.passes.vendor.plan import plan_vendor
from diopigen.passes.vendor.resolve_conversions import PRIMITIVES
from diopigen.project import Project
from diopigen.source.vendor.convert_config import read_convert_config
from diopigen.targets import adaptor, header
from diopigen.targets.output import renderer

FLAGS = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]

LOSSY = """
- common_config:
    dtype: (float64, float16, bfloat16)->float32, (int64, int16, int8, uint8)->int32, (bool)->uint16
    layout: NHWC
    contiguous: true
"""

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")


@pytest.fixture(scope="module")
def generated(checkout: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The headers and droplet's adaptor, freshly generated."""
    folder = tmp_path_factory.mktemp("droplet")
    diagnostics = Diagnostics()
    program = pipeline.run(checkout, diagnostics, pipeline.Stage.VENDOR, vendor="droplet")
    assert program is not None
    assert program.plans
    _write(program, checkout, folder)
    return folder


def _write(program: Program, checkout: Project, folder: Path) -> None:
    render = renderer(checkout.templates)
    for output in (*header.outputs(program, render), *adaptor.outputs(program, render)):
        path = folder / output.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(output.text, encoding="utf-8")


@pytest.fixture(scope="module")
def lossy(checkout: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for a chip that lacks almost everything, so that each tensor of each function is converted."""
    folder = tmp_path_factory.mktemp("lossy")
    config = folder / "convert_config.yaml"
    config.write_text(LOSSY, encoding="utf-8")
    diagnostics = Diagnostics()
    program = pipeline.run(checkout, diagnostics, pipeline.Stage.VENDOR, vendor="droplet")
    assert program is not None
    assert program.vendor is not None
    found = Diagnostics()
    rules = read_convert_config(config, config.name, program.functions, program.dtypes, found)
    program = plan_vendor(replace(program, vendor=replace(program.vendor, rules=rules)), found)
    assert [f for f in found.found if f.severity is not Severity.NOTE] == []
    without = {plan.symbol for plan in program.plans if not plan.conversions} - set(PRIMITIVES)
    assert without == {"diopiTensorDestructionHook"}  # which gets no tensor's values
    _write(program, checkout, folder)
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


def test_every_tensor_can_be_converted(checkout: Project, lossy: Path) -> None:
    sources = sorted((lossy / "adaptor").glob("*.cpp"))
    assert {s.name: text for s in sources if (text := complaints(checkout, lossy, s))} == {}


def test_another_signature_would_be_noticed(checkout: Project, generated: Path, tmp_path: Path) -> None:
    source = tmp_path / "adaptor_activation.cpp"
    text = (generated / "adaptor" / source.name).read_text(encoding="utf-8")
    changed = text.replace("diopiRelu(diopiContextHandle_t ctx, diopiTensorHandle_t out", "diopiRelu(int out")
    assert changed != text
    source.write_text(changed, encoding="utf-8")
    assert "diopiRelu" in complaints(checkout, generated, source, "-include", "diopi/functions.h")

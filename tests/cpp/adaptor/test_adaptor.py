"""The generated adaptor before a recording vendor: which conversions really happen, under the sanitizers."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from diopigen.targets.adaptor import outputs
from diopigen.targets.output import renderer
from tests.unit.vendor.small_project import ROOT, contract_headers, small_contract, with_vendor

HERE = Path(__file__).parent
SCENARIOS = re.findall(r"^void (\w+)\(\) \{", (HERE / "scenarios.cpp").read_text(encoding="utf-8"), re.MULTILINE)
FLAGS = ["-std=c++17", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")


@pytest.fixture(scope="module", params=["plain", "sanitized"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scenarios, linked with what the generator writes for the recording vendor."""
    folder = tmp_path_factory.mktemp(f"adaptor-{request.param}")
    config = (HERE / "convert_config.yaml").read_text(encoding="utf-8")
    planned, diagnostics = with_vendor(small_contract(), config, folder)
    assert diagnostics.found == []
    sources = [*HERE.glob("*.cpp"), *(ROOT / "runtime_cpp/adaptor").glob("*.cpp")]
    for output in outputs(planned, renderer(ROOT / "templates")):
        path = folder / output.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(output.text, encoding="utf-8")
        if path.name != "abi_record.cpp":
            sources.append(path)
    sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"] if request.param == "sanitized" else []
    include = [f"-I{contract_headers(folder)}", f"-I{ROOT / 'runtime_cpp'}"]
    command = ["g++", *FLAGS, *sanitize, *include, *map(str, sources), "-o", str(folder / "scenarios")]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder / "scenarios"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(program: Path, scenario: str) -> None:
    ran = subprocess.run([str(program), scenario], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_scenario_is_run(program: Path) -> None:
    listed = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.split()
    assert sorted(listed) == sorted(SCENARIOS)

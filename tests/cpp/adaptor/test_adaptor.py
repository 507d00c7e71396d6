"""The generated adaptor before a recording vendor: which conversions really happen, under the sanitizers."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from diopigen.diagnostics import Severity
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
    assert [found for found in diagnostics.found if found.severity is not Severity.NOTE] == []
    sources = [*HERE.glob("*.cpp"), *(ROOT / "runtime_cpp/adaptor").glob("*.cpp")]
    for output in outputs(planned, renderer(ROOT / "templates")):
        path = folder / output.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(output.text, encoding="utf-8")
        if path.suffix == ".cpp" and path.name != "abi_record.cpp":
            sources.append(path)
    sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"] if request.param == "sanitized" else []
    include = [f"-I{contract_headers(folder)}", f"-I{ROOT / 'runtime_cpp'}"]
    command = ["g++", *FLAGS, *sanitize, *include, *map(str, sources), "-o", str(folder / "scenarios")]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder / "scenarios"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(program: Path, scenario: str) -> None:
    ran = run(program, scenario)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def run(program: Path, scenario: str) -> subprocess.CompletedProcess[str]:
    """Also fails on memory that the scenario never gave back, whatever the environment says of it."""
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1"}
    command = [str(program), scenario]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_a_leak_would_be_seen(program: Path) -> None:
    ran = run(program, "leak")
    sanitized = "sanitized" in program.parent.name
    assert (ran.returncode != 0) == sanitized
    assert ("Direct leak of 4321 byte(s) in 1 object(s)" in ran.stderr) == sanitized


def traced(program: Path, scenario: str, trace: str) -> str:
    """What a scenario writes to standard error where conversions are traced."""
    environment = {**os.environ, "DIOPI_ADAPTOR_TRACE": trace}
    ran = subprocess.run([str(program), scenario], env=environment, capture_output=True, text=True, check=True)
    return ran.stderr


TOTALS = """\
diopi adaptor: 2 conversions moved 192 bytes
              96 bytes          1 times  diopiConvolution2d input: float64 contiguous -> float32 channels_last
              96 bytes          1 times  diopiConvolution2d out: float32 channels_last -> float64 contiguous
"""
LINES = """\
diopi adaptor: diopiConvolution2d input: float64 contiguous -> float32 channels_last, 96 bytes
diopi adaptor: diopiConvolution2d out: float32 channels_last -> float64 contiguous, 96 bytes
"""


def test_trace(program: Path, tmp_path: Path) -> None:
    scenario = "dtype_and_layout_change_in_one_step"
    assert traced(program, scenario, "1") == LINES + TOTALS
    assert traced(program, scenario, "totals") == TOTALS
    assert traced(program, scenario, "0") == "" and traced(program, scenario, "") == ""
    file = tmp_path / "trace.txt"
    assert traced(program, scenario, str(file)) == "" and traced(program, scenario, str(file)) == ""
    assert file.read_text(encoding="utf-8") == 2 * (LINES + TOTALS)


def test_trace_that_cannot_be_written(program: Path, tmp_path: Path) -> None:
    file = tmp_path / "absent" / "trace.txt"
    told = traced(program, "inout_is_converted_both_ways", str(file))
    assert told == f"diopi adaptor: DIOPI_ADAPTOR_TRACE: '{file}' cannot be written; there is no trace\n"


def test_nothing_to_trace(program: Path) -> None:
    assert traced(program, "suiting_tensors_pass_untouched", "1") == ""


def test_the_range_is_told(program: Path) -> None:
    scenario = "integers_that_a_cast_would_change_are_found"
    ran = subprocess.run([str(program), scenario], capture_output=True, text=True, check=True)
    assert ran.stderr == (
        "diopi adaptor: diopiAdd: element [0, 1] of 'other' is 2147483648, which int32 cannot hold "
        "(convert_config.yaml casts int64 to it)\n"
    )


def test_what_was_thrown_is_told(program: Path) -> None:
    ran = run(program, "what_the_vendor_throws_becomes_a_status")
    cast, add = (f"diopi adaptor: {name} threw an exception\n" for name in ("diopiCastDtype", "diopiAdd"))
    assert ran.stderr == cast * 3 + add + cast


def test_every_scenario_is_run(program: Path) -> None:
    listed = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.split()
    assert sorted(listed) == sorted(SCENARIOS)

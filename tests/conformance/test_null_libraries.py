"""Libraries that compute nothing, against two cases of each function; `make deep-test KIND=mutants` takes all."""

import os
import re
import shutil
from pathlib import Path

import pytest

from diopi_conformance.cases.plan import read_plan
from diopi_conformance.cases.selection import sampled
from tools.null_library.build import NULL_LIBRARIES, build_null_libraries
from tools.null_library.verdicts import Tally, expected, tallies

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = (Path(os.environ.get("DIOPI_BUILD", ROOT / "build" / "droplet")) / "lib").resolve()
PLAN = ROOT / "generated" / "droplet" / "conformance" / "plan.json"

pytestmark = [
    pytest.mark.skipif(
        shutil.which("g++") is None or not (PLAN.exists() and (LIBRARIES / "libdiopirt.so").exists()),
        reason="droplet is not built, or there is no g++",
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The libraries and their sources."""
    made = tmp_path_factory.mktemp("null_libraries")
    build_null_libraries(ROOT, made)
    return made


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, Tally]:
    plan = read_plan(PLAN)
    libraries = {library.name: folder / library.name / "libdiopi_impl.so" for library in NULL_LIBRARIES}
    return tallies(plan, sampled(plan.cases, 2), LIBRARIES / "libdiopirt.so", libraries)


def test_every_function_of_the_contract_is_in_the_library(folder: Path) -> None:
    defined = re.findall(r"^diopiError_t (diopi\w+)\(", (folder / "whole.cpp").read_text(), re.MULTILINE)
    assert sorted(defined) == sorted(read_plan(PLAN).functions)


def test_a_library_without_functions_passes_nothing(found: dict[str, Tally]) -> None:
    assert (found["empty"].passes, found["empty"].trivial) == ([], [])
    assert found["empty"].failed == found["empty"].judged


@pytest.mark.parametrize("name", ["idle", "idle 0x5a", "idle 0x77"])
def test_a_library_that_writes_nothing_passes_what_needs_no_writing(found: dict[str, Tally], name: str) -> None:
    assert found[name].passes == []
    assert 0 < len(found[name].trivial) < len(found[name].judged)


@pytest.mark.parametrize("name", ["zeros", "copies"])
def test_a_library_that_writes_the_same_everywhere_is_seen(found: dict[str, Tally], name: str) -> None:
    assert len(found[name].failed) > 0.9 * len(found[name].judged)


def test_a_function_that_no_case_fails_is_a_complaint() -> None:
    fooled = Tally(judged={"diopiAdd", "diopiZeros"})
    assert expected("zeros", fooled) == ["no case of diopiAdd fails; add rows that tell it apart"]
    assert expected("idle", Tally(passes=["add/f32/0"])) == ["add/f32/0 passes although nothing was written"]

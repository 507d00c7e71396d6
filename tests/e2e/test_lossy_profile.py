"""A variant of droplet without 64-bit numbers, channels innermost: every case passes, with and without sanitizers.

Results are judged by what the variant can hold: float64 has the precision of float32.
"""

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import LOSSY, ROOT, Built, built

pytestmark = [
    pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++"),
]


SANITIZED = pytest.param("asan", marks=pytest.mark.deep("sanitizers", "the same cases without sanitizers"))


@pytest.fixture(scope="module", params=[None, SANITIZED], ids=["plain", "sanitized"])
def chip(request: pytest.FixtureRequest) -> Built:
    return built(request.param)


def test_its_configuration_is_clean() -> None:
    command = [sys.executable, "-m", "diopigen", "lint", "--vendor", "droplet", "--convert-config", str(LOSSY)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    # a release of torch may lack operators that droplet serves
    assert (done.returncode, LOSSY.name in done.stdout) == (0, False), done.stdout + done.stderr


def half_converted(outcome: dict[str, Any]) -> bool:
    """Whether a function that allocates several tensors behind one handle gave the second as the chip has it.

    The adaptor knows of the first only. Known of this function alone.
    """
    told = outcome["message"] == "'outlist[1]' is of type f32, expected f64"
    return told and outcome["function"] == "diopiIndiceConvBackwardMmcv"


EACH_FUNCTION, EACH_ELEMENT_TYPE = ("--sample", "2"), ("--shard", "1/12")


@pytest.mark.parametrize(("asynchronous", "part"), [("0", EACH_FUNCTION), ("1", EACH_ELEMENT_TYPE)])
def test_cases_are_clean(asynchronous: str, part: tuple[str, str], chip: Built, tmp_path: Path) -> None:
    options = ("--origin", "row", *part)
    report = chip.variant("lossy").report(tmp_path / "report.json", *options, DROPLET_ASYNC=asynchronous)
    bad = [(o["id"], o["message"]) for o in report["outcomes"] if o["verdict"] != "pass" and not half_converted(o)]
    unfit = [(id_, message) for id_, message in bad if message.endswith(("that i32 cannot", "that f32 cannot"))]
    assert bad == unfit and len(unfit) < report["planned"] // 100  # the extremes of 64-bit numbers
    assert report["leaks"] == []
    told = any(half_converted(outcome) for outcome in report["outcomes"])
    assert report["exit"] == int(told) and report["counts"]["pass"] > 1000


def test_it_computes_as_narrowly_as_it_says(chip: Built, tmp_path: Path) -> None:
    demanding = replace(chip.variant("lossy"), plan=chip.droplet.plan)  # which knows of no cast
    selected = (
        "--op",
        "exp",
        "--op",
        "tanh",
        "--dtype",
        "f*",
        "--origin",
        "row",
    )  # the result's, too: whole numbers have one
    report = demanding.report(tmp_path / "report.json", *selected)
    told = [o for o in report["outcomes"] if not o["change"].startswith("zero")]
    verdicts = {(o["elements"], o["verdict"]) for o in told}
    assert {dtype for dtype, verdict in verdicts if verdict == "fail"} == {"f64"}
    assert {("f16", "pass"), ("f32", "pass"), ("i64", "pass")} <= verdicts and ("f64", "pass") not in verdicts

"""The suite on the simulated chip, where it is built: in both modes, and with faults that must be seen.

`DIOPI_BUILD` names another build than build/droplet.
"""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = Path(os.environ.get("DIOPI_BUILD", ROOT / "build" / "droplet")) / "lib"
PLAN = ROOT / "generated" / "droplet" / "conformance" / "plan.json"

pytestmark = pytest.mark.skipif(
    not (PLAN.exists() and (LIBRARIES / "libdiopi_impl.so").exists()), reason="droplet is not built"
)


def outcomes(tmp_path: Path, *args: str, **environment: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the report of a run."""
    out = tmp_path / "report.json"
    command = [sys.executable, "-m", "diopi_conformance.cli", "run", "--vendor", "droplet"]
    command += ["--libraries", str(LIBRARIES), "--out", str(out), *args]
    found = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=500
    )
    assert found.returncode in (0, 1), found.stderr
    return found.returncode, json.loads(out.read_text())


def test_the_library_has_every_function_of_the_contract():
    library = ctypes.CDLL(str(LIBRARIES / "libdiopi_impl.so"), os.RTLD_LAZY)
    functions = json.loads(PLAN.read_text())["functions"]
    assert len(functions) == 548
    assert [symbol for symbol in functions if not hasattr(library, symbol)] == []


IN_BOTH = ["--view", "aliased"]


@pytest.mark.parametrize(
    ("asynchronous", "views"),
    [("0", ["--view", "expanded", *IN_BOTH]), ("1", ["--view", "strided", *IN_BOTH, "--shard", "1/2"])],
)
def test_a_choice_of_every_topic_passes(tmp_path, asynchronous, views):
    code, report = outcomes(tmp_path, *views, DROPLET_ASYNC=asynchronous)
    bad = [(o["id"], o["message"]) for o in report["outcomes"] if o["verdict"] != "pass"]
    assert (code, bad) == (0, [])
    assert report["counts"]["pass"] > 500


def test_every_type_of_one_operator_passes(tmp_path):
    code, report = outcomes(tmp_path, "--op", "add", "--op", "sum", "--strict")
    assert code == 0
    assert report["counts"] == {"pass": report["planned"]}


def test_a_chip_that_fails_a_launch_fails_the_run(tmp_path):
    """A case takes a launch or two, and where it left something behind 12 more to see whether that grows."""
    selected = ("--function", "diopiAdd", "--dtype", "f32", "--origin", "row")
    code, report = outcomes(tmp_path, *selected, DROPLET_FAULT="launch:20")
    assert code == 1
    bad = [o for o in report["outcomes"] if o["verdict"] != "pass"]
    assert bad and all("DROPLET_FAULT" in o["message"] for o in bad)  # and no case after it suffers
    assert len(bad) <= report["planned"] // 4 + 1


def test_a_chip_without_memory_says_so(tmp_path):
    code, report = outcomes(tmp_path, "--function", "diopiAdd", "--dtype", "f32", DROPLET_FAULT="malloc:9")
    assert code == 1
    assert any("memory" in o["message"] for o in report["outcomes"])

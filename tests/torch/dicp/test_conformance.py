"""The suite's cases through torch.compile: a part of them, with sizes fixed and as symbols."""

import json
from pathlib import Path

import pytest

from tests.processes import ROOT, run_python


@pytest.mark.parametrize("options", [(), ("--dynamic",)])
def test_cases_through_the_compiler_are_right(libraries: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    if not (libraries / "compiler" / "target.json").exists():
        pytest.skip("a vendor with a launcher is not built")
    report = tmp_path / "report.json"
    shard = "7/300" if not options else "11/900"
    command = ("-m", "diopi_conformance", "compiled", "--vendor", "droplet", "--libraries", str(libraries))
    words = (
        "--plan",
        str(ROOT / "generated/droplet/conformance/plan.json"),
        "--shard",
        shard,
        "--jobs",
        "1",
        "--quiet",
    )
    done = run_python(*command, *words, "--out", str(report), *options, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = json.loads(report.read_text())["counts"]
    assert set(counts) <= {"pass", "skipped"} and counts["pass"] > 20 * counts.get("skipped", 0) / 3


def test_a_library_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    done = run_python("-m", "diopi_conformance", "compiled", "--vendor", "droplet", "--libraries", str(tmp_path))
    assert done.returncode == 2
    assert f"there is no {tmp_path}/libtorch_dipu.so; build it with 'make build IMPL=droplet'" in done.stderr

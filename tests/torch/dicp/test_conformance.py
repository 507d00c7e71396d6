"""The suite's cases through torch.compile: a part of them, with sizes fixed and as symbols."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.processes import ROOT, run_python

MORE = pytest.mark.deep("fuzz", "a smaller part of the same cases; tests/torch/dicp asks of each kind of expression")


@pytest.mark.parametrize(
    ("part", "options", "skipped"),
    [
        # Fewer than 13 of 100 cases are skipped; of forty cases chance makes it one of seven and more.
        ("7/900", (), 0.25),
        ("301/3600", ("--dynamic",), 0.25),
        pytest.param("7/60", (), 0.13, marks=MORE),
        pytest.param("11/180", ("--dynamic",), 0.13, marks=MORE),
    ],
)
def test_cases_through_the_compiler_are_right(
    compiling: Path, tmp_path: Path, part: str, options: tuple[str, ...], skipped: float
) -> None:
    counts = report_of(compiling, tmp_path, "--shard", part, *options)["counts"]
    assert set(counts) <= {"pass", "skipped"}
    assert counts.get("skipped", 0) < skipped * sum(counts.values())


def report_of(libraries: Path, folder: Path, *options: str) -> dict[str, Any]:
    """What the command finds, which exits with 0."""
    report = folder / "report.json"
    plan = str(ROOT / "generated/droplet/conformance/plan.json")
    command = (
        "-m",
        "diopi_conformance",
        "compiled",
        "--vendor",
        "droplet",
        "--libraries",
        str(libraries),
        "--plan",
        plan,
    )
    done = run_python(*command, "--jobs", "1", "--quiet", "--out", str(report), *options, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def test_a_formula_that_reads_data_is_compiled_in_parts(compiling: Path, tmp_path: Path) -> None:
    """It is a case where torch finds something to compile between what Python computes."""
    names = ("tin_shift_mmcv/f32/2", "ban_bad_words_inp/f16-i64/strided/0", "box_iou_rotated_mmcv/f32/2")
    found = report_of(compiling, tmp_path, *(word for name in names for word in ("--id", name)))
    told = {one["id"]: (one["verdict"], one["message"]) for one in found["outcomes"]}
    assert [told[name] for name in names] == [
        ("pass", ""),
        ("skipped", "torch compiles nothing of its formula"),
        ("skipped", "its formula computes in Python"),
    ]


def test_a_library_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    done = run_python("-m", "diopi_conformance", "compiled", "--vendor", "droplet", "--libraries", str(tmp_path))
    assert done.returncode == 2
    assert f"there is no {tmp_path}/libtorch_dipu.so; build it with 'make build IMPL=droplet'" in done.stderr

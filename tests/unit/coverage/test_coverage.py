"""Coverage: the state of each function and type, the sums, and the figures of a conformance run."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from diopigen.cli import cli
from diopigen.project import Project

OPS = """\
double:
  doc: Doubles `input`.
  args: {input: Tensor<T>}
  out: Tensor<T> like input
  where: {T: [f32, f64]}
  variants: [out, inplace]
  kernel: input + input
  cases:
    - {input: [8]}
cast_dtype:
  doc: Converts `input` to the type of `out`.
  args: {input: Tensor<T>}
  out: Tensor<U> like input
  where: {T: any, U: any}
  cases:
    - {input: [8]}
weigh:
  doc: Multiplies `input` with `weight`.
  args: {input: Tensor<T>, weight: Tensor<T>}
  out: Tensor<T> like input
  where: {T: [f32, f64]}
  cases:
    - {input: [8], weight: [8]}
"""
CHIP = {
    "vendor.yaml": "doc: A chip for tests.\nbase: portable\n",
    "convert_config.yaml": "- diopiDouble:\n    dtype: (float64)->float32\n",
}
NO_CASES = {"passed": 0, "lacking": 0, "bad": 0, "ulp": None}
BARE = {"vendor.yaml": "doc: A chip without anything.\n"}


@pytest.fixture
def project(miniature: Callable[..., Project], checkout: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("DIOPIGEN_CACHE_DIR", str(checkout.cache))
    return miniature({"tests.yaml": OPS}, {"chip": CHIP, "bare": BARE})


def run(project: Project, *words: str) -> Result:
    return CliRunner().invoke(cli, ["--project", str(project.root), "coverage", *words])


def covered(project: Project, *words: str) -> dict[str, Any]:
    result = run(project, "--format", "json", *words)
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def report(path: Path, *verdicts: tuple[str, str], planned: int = 4, version: int = 2) -> None:
    outcomes = [
        {"id": f"x/f32-f64/{i}", "function": s, "elements": "f32-f64", "verdict": v, "ulp": i / 2}
        for i, (s, v) in enumerate(verdicts, 1)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"version": version, "planned": planned, "outcomes": outcomes}), encoding="utf-8")


def test_every_function_has_a_state_for_each_of_its_types(project: Project) -> None:
    rows = {row["symbol"]: row for row in covered(project, "--vendor", "chip")["functions"]}
    assert list(rows) == ["diopiDouble", "diopiDoubleInp", "diopiCastDtype", "diopiWeigh"]
    assert rows["diopiDouble"]["state"] == "kernel line"
    assert rows["diopiDouble"]["dtypes"] == {
        "f32": {"state": "kernel line", "cases": NO_CASES},
        "f64": {"state": "converted", "cases": NO_CASES, "to": {"out": "f32", "input": "f32"}},
    }
    assert rows["diopiDoubleInp"]["dtypes"]["f64"]["state"] == "kernel line"
    assert (rows["diopiCastDtype"]["state"], rows["diopiCastDtype"]["source"]) == (
        "portable",
        "runtime_cpp/kernels/shape/copy.cpp",
    )
    assert rows["diopiWeigh"]["state"] == "missing"
    assert [cell["state"] for cell in rows["diopiWeigh"]["dtypes"].values()] == ["missing", "missing"]


def test_sums_are_those_of_the_rows(project: Project) -> None:
    total = covered(project, "--vendor", "chip")["total"]
    assert (total["functions"], total["implemented"], total["converted"]) == (4, 3, 1)
    assert total["states"] == {
        "own": 0,
        "exported": 0,
        "base": 0,
        "generated": 0,
        "portable": 1,
        "kernel line": 2,
        "missing": 1,
        "composed": 0,
    }


def test_without_a_base_all_is_missing(project: Project) -> None:
    document = covered(project, "--vendor", "bare")
    assert document["total"]["implemented"] == 0
    assert {row["state"] for row in document["functions"]} == {"missing"}


def test_the_last_run_is_counted_by_function(project: Project) -> None:
    path = project.root / "conformance_results" / "chip.json"
    report(path, ("diopiDouble", "pass"), ("diopiDouble", "fail"), ("diopiWeigh", "not-implemented"))
    document = covered(project, "--vendor", "chip")
    rows = {row["symbol"]: row["cases"] for row in document["functions"]}
    types = {row["symbol"]: row["dtypes"] for row in document["functions"]}
    assert types["diopiDouble"]["f32"]["cases"] == types["diopiDouble"]["f64"]["cases"] == rows["diopiDouble"]
    assert types["diopiWeigh"]["f32"]["cases"]["lacking"] == 1
    assert document["conformance"] == {"planned": 4, "passed": 1, "lacking": 1, "bad": 1, "ulp": 0.5}
    assert rows["diopiDouble"] == {"passed": 1, "lacking": 0, "bad": 1, "ulp": 0.5}
    assert rows["diopiWeigh"] == {"passed": 0, "lacking": 1, "bad": 0, "ulp": None}
    text = run(project, "--vendor", "chip").output
    assert "1 of 4 planned cases passed, 1 not implemented, 1 bad, 1 did not run" in text


def test_values_that_no_dtype_of_the_chip_holds_are_a_lack(project: Project) -> None:
    path = project.root / "conformance_results" / "chip.json"
    report(path, ("diopiDouble", "pass"), ("diopiDouble", "skipped"))
    found = covered(project, "--vendor", "chip")["conformance"]
    assert found == {"planned": 4, "passed": 1, "lacking": 1, "bad": 0, "ulp": 0.5}


def test_without_a_run_the_report_says_so(project: Project) -> None:
    assert covered(project, "--vendor", "chip")["conformance"] is None
    assert "The conformance suite has not been run." in run(project, "--vendor", "chip").output


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nonsense", ":1:1: cannot be read as a conformance report: Expecting value"),
        ("[" * 100_000, " cannot be read as a conformance report: maximum recursion depth exceeded"),
        (
            '{"version": 2, "outcomes": [], "planned": Infinity}',
            " cannot be read as a conformance report: it is not a report",
        ),
        ('{"planned": 3}', " cannot be read as a conformance report: it is not a report"),
        (
            '{"version": 9, "planned": 1, "outcomes": []}',
            " cannot be read as a conformance report: its version is 9, not 2",
        ),
    ],
)
def test_a_bad_report_is_a_sentence(project: Project, text: str, says: str) -> None:
    path = project.root / "conformance_results" / "chip.json"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    result = run(project, "--vendor", "chip")
    assert result.exit_code == 2
    assert f"conformance_results/chip.json{says}" in result.output


def test_out_is_written_the_same_each_time(project: Project, tmp_path: Path) -> None:
    for form in ("markdown", "json", "html"):
        pages = [tmp_path / f"{form}.{n}" for n in (1, 2)]
        for page in pages:
            assert run(project, "--vendor", "chip", "--format", form, "--out", str(page)).exit_code == 0
        assert pages[0].read_bytes() == pages[1].read_bytes() != b""


def test_the_page_asks_for_nothing_from_elsewhere(project: Project) -> None:
    text = run(project, "--vendor", "chip", "--format", "html").output
    assert "<title>Coverage of chip</title>" in text and text.rstrip().endswith("</html>")
    for word in ("http:", "https:", "src=", "@import", "url("):
        assert word not in text


def test_the_page_opens_on_what_failed_or_on_a_summary(project: Project) -> None:
    def headings() -> list[str]:
        text = run(project, "--vendor", "chip", "--format", "html").output
        return re.findall("<h2[^>]*>(.*?)</h2>", text)

    assert headings() == ["Topics", "Functions"]
    report(project.root / "conformance_results" / "chip.json", ("diopiDouble", "fail"))
    assert headings() == ["Functions", "Topics"]


def test_an_error_in_a_schema_is_shown_and_nothing_is_reported(project: Project) -> None:
    schema = project.schemas / "ops" / "tests.yaml"
    schema.write_text(schema.read_text(encoding="utf-8").replace("like input", "like inptu", 1), encoding="utf-8")
    result = run(project, "--vendor", "chip")
    assert result.exit_code == 1
    assert "did you mean 'input'?" in result.output
    assert "Coverage of" not in result.output

"""The tables of docs/performance.md: what a result says, and what is said of a benchmark that has none."""

import json
from pathlib import Path

import pytest

from tools import performance_page
from tools.marked_part import MarkedPart

PAGE = """# Measurements

<!-- training: written by tools/performance_page.py -->

<!-- end of training -->

Between.

<!-- operators_cuda: written by tools/performance_page.py -->

old

<!-- end of operators_cuda -->
"""
FACTS = {"measured": "2026-01-02", "processor": "Chip 3", "architecture": "x86_64", "compiler": "g++ 12.2.0"}
RESULT = {
    "facts": FACTS | {"device": "2 x GPU", "torch": "2.13.0", "python": "3.11.7"},
    "comparisons": [
        {"name": "a|b over CPU", "value": 0.5, "unit": "x", "target": "1.0 or less"},
        {"name": "more", "value": 20.0, "unit": "ns", "target": ""},
    ],
    "figures": [{"name": "a|b", "unit": "ms", "median": 1.5, "low": 1.25, "high": 2.0}],
}
TABLES = """2026-01-02, Chip 3, 2 x GPU, g++ 12.2.0, torch 2.13.0, Python 3.11.7:

| compared | | target |
|---|---|---|
| a\\|b over CPU | 0.5 | 1.0 or less |
| more | 20 ns |  |

| measured | median | quartiles |
|---|---|---|
| a\\|b | 1.5 ms | 1.25 to 2 |
"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page with the result of one benchmark, and without that of another."""
    found = tmp_path / "performance.md"
    found.write_text(PAGE, encoding="utf-8")
    (tmp_path / "training.json").write_text(json.dumps(RESULT), encoding="utf-8")
    monkeypatch.setattr(performance_page, "PAGE", found)
    monkeypatch.setattr(performance_page, "RESULTS", tmp_path)
    monkeypatch.setattr("sys.argv", ["performance_page"])
    return found


def test_a_part_has_its_benchmark_s_day_machine_and_tables(page: Path) -> None:
    assert performance_page.main() == 0
    told = "Not measured with this version: `benchmarks/run.py operators --vendor cuda --build build/cuda`.\n"
    training, operators = (MarkedPart(page, name, "performance_page") for name in ("training", "operators_cuda"))
    assert page.read_text(encoding="utf-8") == operators.replaced(training.replaced(PAGE, TABLES), told)


def test_a_page_of_other_results_is_told(
    page: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["performance_page", "--check"])
    assert performance_page.main() == 1 and page.read_text(encoding="utf-8") == PAGE
    said = "performance.md is not up to date with its training: run 'python -m tools.performance_page'\n"
    assert capsys.readouterr().err == said


def test_many_figures_stay_in_their_file(page: Path) -> None:
    result = RESULT | {"figures": [RESULT["figures"][0]] * (performance_page.MOST + 1)}
    (page.parent / "training.json").write_text(json.dumps(result), encoding="utf-8")
    assert performance_page.main() == 0 and "| measured |" not in page.read_text(encoding="utf-8")

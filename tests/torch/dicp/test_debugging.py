"""Looking into programs: DICP_DUMP, DICP_CHECK, DICP_PROFILE, and variables with values that they do not take."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest


def function(x: Any, w: Any) -> Any:
    return ((x @ w).sigmoid() * x).sum(-1)


@pytest.fixture
def tensors(torch: Any) -> tuple[Any, Any]:
    torch.manual_seed(0)
    return torch.randn(8, 8).to("dipu"), torch.randn(8, 8).to("dipu")


def test_a_dump_holds_graph_program_source_page_and_explanation(
    compiled: Any, tensors: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DICP_DUMP", str(tmp_path / "dump"))
    compiled(function)(*tensors)
    (place,) = (tmp_path / "dump").iterdir()
    assert place.name.endswith("_inference")
    names = {path.name for path in place.iterdir()}
    assert names == {"graph.py", "explanation.txt", "program.json", "program.html", "program.cpp"}
    program = json.loads((place / "program.json").read_text())
    assert [i["kind"] for i in program["instructions"]] == ["call", "kernel"]
    assert program["instructions"][0]["function"] == "diopiMm"
    assert program["instructions"][1]["steps"] == ["sigmoid", "mul", "SumFold<{}>"]
    explanation = (place / "explanation.txt").read_text()
    assert explanation.startswith("inference: 2 launches of 4 unfused: 1 kernels, 1 library calls, 0 islands;")
    page = (place / "program.html").read_text()
    assert "diopiMm" in page and "<svg" in page and "://" not in page and "default-src 'none'" in page


def test_a_check_passes_where_nothing_is_wrong(
    torch: Any, compiled: Any, tensors: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DICP_CHECK", "1")
    run = compiled(lambda x, w: torch.nn.functional.dropout(function(x, w), 0.5))
    torch.manual_seed(1)
    found = run(*tensors)
    torch.manual_seed(1)
    assert torch.equal(found, torch.nn.functional.dropout(function(*tensors), 0.5))


def test_a_check_names_the_first_instruction_that_differs(
    torch: Any, compiled: Any, tensors: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sigmoid of the table is planted to be another function."""
    from dicp import backend

    target = backend.vendor_target()
    wrong = replace(target.table.kernels["sigmoid"], body="static_cast<C>(input)")
    table = replace(target.table, kernels={**target.table.kernels, "sigmoid": wrong})
    monkeypatch.setattr(type(target), "table", property(lambda self: table))
    monkeypatch.setenv("DICP_CHECK", "1")
    with pytest.raises(Exception, match=r"^kernel \(sigmoid, mul, sum_1\): 'sum_1'\[0\] is .*, eager mode gives "):
        compiled(function)(*tensors)


def test_each_instruction_is_a_range_of_the_profiler(
    torch: Any, compiled: Any, tensors: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DICP_PROFILE", "1")
    run = compiled(function)
    run(*tensors)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        run(*tensors)
    counts = {row.key: row.count for row in profiler.key_averages()}
    assert counts["dicp inference"] == 1
    assert counts["diopiMm (mm)"] == 1 and counts["kernel (sigmoid, mul, sum_1)"] == 1


def test_a_variable_with_another_value_is_an_error(
    compiled: Any, tensors: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DICP_CHECK", "yes")
    with pytest.raises(Exception, match="DICP_CHECK is 'yes': set it to 0 or 1"):
        compiled(function)(*tensors)

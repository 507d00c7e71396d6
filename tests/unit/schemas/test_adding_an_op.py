"""The op of docs/adding-an-op.md gives what the page says."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.project import Project

PAGE = Path(__file__).resolve().parents[3] / "docs" / "adding-an-op.md"


@pytest.fixture
def project(miniature: Callable[..., Project]) -> Project:
    entry = re.search(r"```yaml\n(hardsigmoid:.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert entry is not None
    return miniature({"activation.yaml": entry[1]})


def test_the_entry_of_the_page_gives_three_functions_and_five_overloads(project: Project, checkout: Project) -> None:
    diagnostics = Diagnostics()
    contract = pipeline.run(project, diagnostics)
    assert contract is not None
    program = pipeline.run(checkout, diagnostics, pipeline.Stage.ATEN, pipeline.Stage.CASES, program=contract)
    assert not diagnostics.failed
    assert [(f.symbol, f.kernel is not None) for f in program.functions] == [
        ("diopiHardsigmoid", True),
        ("diopiHardsigmoidInp", True),
        ("diopiHardsigmoidBackward", True),
    ]
    assert {b.overload.name for b in program.bindings} == {
        "hardsigmoid",
        "hardsigmoid.out",
        "hardsigmoid_",
        "hardsigmoid_backward",
        "hardsigmoid_backward.grad_input",
    }
    assert {case.symbol for case in program.cases} == {f.symbol for f in program.functions}

"""Numbers in pages that a change of the schemas or of the suite's data would make untrue."""

import pytest

from diopi_conformance.cases.model_cases import model_names
from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.model.program import Program
from diopigen.project import Project
from tests.processes import ROOT

WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@pytest.fixture(scope="module")
def program() -> Program:
    found = pipeline.run(Project(root=ROOT), Diagnostics(), pipeline.Stage.ATEN)
    assert found is not None
    return found


def test_what_follows_from_the_entry_of_add(program: Program) -> None:
    functions = WORDS[sum(function.op == "add" for function in program.functions)]
    bindings = WORDS[sum(binding.op == "add" for binding in program.bindings)]
    index, architecture = (
        " ".join((ROOT / "docs" / name).read_text(encoding="utf-8").split()) for name in ("index.md", "architecture.md")
    )
    assert f"generate {functions} C functions" in index and f"registrations of {bindings} PyTorch operators" in index
    assert f"{functions} functions (`diopiAdd`" in architecture and f"{bindings} bindings to ATen" in architecture


def test_models_of_the_suite() -> None:
    page = (ROOT / "conformance" / "README.md").read_text(encoding="utf-8")
    assert f"of {len(model_names())} models, captured on the CPU" in page

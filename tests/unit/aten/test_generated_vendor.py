"""A vendor that says `generate: aten`: what it is told where that cannot be done."""

from collections.abc import Callable

import pytest

from diopigen import pipeline
from diopigen.aten.catalog import TorchMissing
from diopigen.diagnostics import Diagnostics, render_human
from diopigen.model.vendor import Origin
from diopigen.project import Project
from tests.unit.aten.conftest import ADD

Miniature = Callable[..., Project]
HEADER = "#include <diopi/diopirt.h>\n"
OWN = "diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t, const diopiScalar_t*, const diopiScalar_t*"


def planned(project: Project, diagnostics: Diagnostics) -> dict[str, Origin]:
    program = pipeline.run(project, diagnostics, pipeline.Stage.VENDOR, vendor="mirror")
    assert program is not None
    return {plan.symbol: plan.implementation.origin for plan in program.plans}


def test_functions_by_hand_come_before_generated_ones(miniature: Miniature) -> None:
    own = f"{HEADER}namespace impl::mirror {{ diopiError_t diopiAddScalar({OWN}) {{ return diopiSuccess; }} }}\n"
    files = {"vendor.yaml": "doc: A mirror.\ngenerate: aten\n", "functions/add.cpp": own}
    diagnostics = Diagnostics()
    assert planned(miniature({"a.yaml": ADD}, {"mirror": files}), diagnostics) == {
        "diopiAdd": Origin.ATEN,
        "diopiAddInp": Origin.ATEN,
        "diopiAddScalar": Origin.VENDOR,
        "diopiAddInpScalar": Origin.ATEN,
    }
    assert diagnostics.found == []


def test_without_torch(miniature: Miniature, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: object) -> None:
        raise TorchMissing("torch is not installed, so the ATen wrappers cannot be generated")

    monkeypatch.setattr(pipeline, "loading", absent)
    project = miniature({"a.yaml": ADD}, {"mirror": {"vendor.yaml": "doc: A mirror.\ngenerate: aten\n"}})
    diagnostics = Diagnostics()
    assert planned(project, diagnostics) == {}
    assert list(render_human(diagnostics, project.root)) == [
        "vendors/mirror/vendor.yaml:1:1: error[missing-torch]: 'mirror' has only the functions of its own: "
        "torch is not installed, so the ATen wrappers cannot be generated",
        "     1 | doc: A mirror.",
        "       | ^ run 'pip install torch'",
    ]


def test_another_word_for_what_is_generated(miniature: Miniature) -> None:
    project = miniature({"a.yaml": ADD}, {"mirror": {"vendor.yaml": "doc: A mirror.\ngenerate: atem\n"}})
    diagnostics = Diagnostics()
    assert planned(project, diagnostics) == {}
    assert list(render_human(diagnostics, project.root)) == [
        "vendors/mirror/vendor.yaml:2:11: error[unknown-word]: 'atem' is not known here",
        "     2 | generate: atem",
        "       |           ^^^^ did you mean 'aten'?",
    ]

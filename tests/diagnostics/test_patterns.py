"""Every diagnostic of patterns.yaml: a bad file, and the exact text that somebody reads."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from diopigen import pipeline
from diopigen.diagnostics import Diagnostics, render_human
from diopigen.project import Project

HERE = Path(__file__).parent
BAD = sorted((HERE / "patterns").glob("*.yaml"))
ADD = """
add:
  doc: Adds.
  args: {input: Tensor<T>, other: Tensor<T>}
  out: Tensor<T> like input
  where: {T: any}
"""
GOOD = """
doubled:
  doc: Adds a tensor to itself.
  by: [add]
  inputs: {x: Tensor<T>}
  where: {T: float}
  match:
    - x + x
  becomes: add(x, x)
  launches: {forward: 1}
  examples:
    - {x: [4]}
"""


@pytest.mark.parametrize("bad", BAD, ids=lambda path: path.stem)
def test_text(bad: Path, miniature: Callable[..., Project], golden: Callable[[Path, str], None]) -> None:
    project = miniature({"add.yaml": ADD})
    shutil.copy(bad, project.schemas / "patterns.yaml")
    diagnostics = Diagnostics()
    program = pipeline.run(project, diagnostics)
    assert program is not None
    if not diagnostics.failed:
        program = pipeline.run(project, diagnostics, pipeline.Stage.ATEN, program=program)
    assert bad.stem in {d.code for d in diagnostics.found}
    golden(bad.with_suffix(".txt"), "\n".join(render_human(diagnostics, project.root)) + "\n")


def test_a_vendor_names_only_patterns_that_there_are(miniature: Callable[..., Project]) -> None:
    vendor = "doc: A chip.\nbase: portable\nwithout_patterns: [doubled, trebled]\n"
    project = miniature({"add.yaml": ADD}, {"chip": {"vendor.yaml": vendor}})
    (project.schemas / "patterns.yaml").write_text(GOOD, encoding="utf-8")
    diagnostics = Diagnostics()
    program = pipeline.run(project, diagnostics, pipeline.Stage.VENDOR, vendor="chip")
    assert program is not None
    found = [line for line in render_human(diagnostics, project.root) if "unknown-pattern" in line]
    assert found == ["vendors/chip/vendor.yaml:3:29: error[unknown-pattern]: there is no pattern 'trebled'"]


def test_a_vendor_wants_channels_innermost_only_where_an_op_knows_of_them(miniature: Callable[..., Project]) -> None:
    vendor = "doc: A chip.\nbase: portable\nchannels_innermost: {ad: [float16], add: [half, float16]}\n"
    project = miniature({"add.yaml": ADD}, {"chip": {"vendor.yaml": vendor}})
    diagnostics = Diagnostics()
    pipeline.run(project, diagnostics, pipeline.Stage.VENDOR, vendor="chip")
    found = [line for line in render_human(diagnostics, project.root) if line.startswith("vendors/chip/vendor.yaml:3")]
    assert found == [
        "vendors/chip/vendor.yaml:3:22: error[unknown-op]: there is no op 'ad'",
        "vendors/chip/vendor.yaml:3:37: error[no-inner-channels]: 'add' has no layout with channels innermost",
        "vendors/chip/vendor.yaml:3:43: error[unknown-dtype]: there is no dtype 'half'",
    ]

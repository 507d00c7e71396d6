"""`diopigen fmt` and convert_config.yaml: the canonical form, and which files have it."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from diopigen.cli import cli
from diopigen.commands.fmt import change
from diopigen.diagnostics import Diagnostics
from diopigen.project import Project
from diopigen.source.format.conversion_style import canonical_conversions
from diopigen.source.yaml.nodes import parse_yaml

LOOSE = """\
# Notes.


# About all.
- common_config:
  layout: NHWC   # planes
  # long
  dtype: (int64)->int32,
         (float64)->float32
- diopiAdd:
      # nothing here


- diopiSgd: {contiguous: true, dtype: (float64)->float32}
-   ops:
     - diopiCat
     - diopiArgmax  # also
    layout: ND
- {layout: ND, ops: [diopiA,diopiB]}
  # trailing
# end
- diopiConv:
    tensor_dtype:
        bias:  (float16, float64)->float32
    supportComposite:   true
    dtype: '(float16)->float32'
-
"""
CLOSE = """\
# Notes.

# About all.
- common_config:
  # long
  dtype: (int64)->int32, (float64)->float32
  layout: NHWC  # planes
- diopiAdd:
  # nothing here

- diopiSgd:
    dtype: (float64)->float32
    contiguous: true
- ops:
    - diopiCat
    - diopiArgmax  # also
  layout: ND
- ops: [diopiA, diopiB]
  layout: ND
# trailing
# end
- diopiConv:
    dtype: '(float16)->float32'
    tensor_dtype:
      bias: (float16, float64)->float32
    supportComposite: true
-
"""


def test_everything_at_once() -> None:
    assert canonical_conversions(LOOSE) == CLOSE


def test_a_fixed_point() -> None:
    assert canonical_conversions(CLOSE) == CLOSE


def test_windows_line_ends_and_a_byte_order_mark() -> None:
    assert canonical_conversions("\ufeff" + LOOSE.replace("\n", "\r\n")) == CLOSE


def test_a_file_of_comments() -> None:
    assert canonical_conversions("#  one\n\n# two  \n") == "#  one\n# two\n"


PIECES = [
    "- diopiAdd:\n    layout: ND\n    dtype: (float64)->float32,\n      (int64)->int32\n",
    "- diopiSgd:\n  contiguous:   w,  dw\n  dtype: none  # side\n",
    "- {ops: [diopiCat, diopiSum], contiguous: false}\n",
    "- ops:\n  - diopiMax\n  - diopiMin\n  layout: NHWC, input(NCHW)\n",
    "- diopiMul: {tensor_dtype: {input: (int8)->int16, other: none}, layout: ND}  # brackets\n",
    "- diopiDiv:\n    tensor_dtype:\n      # above\n      out: (int8)->int16\n      # below\n",
    "- diopiNeg:\n    # says nothing\n",
    "# alone\n",
    "\n",
    "\n\n",
    "    # indented\n",
]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=8))
def test_nothing_is_lost_and_twice_is_once(pieces: list[str]) -> None:
    text, diagnostics = "".join(pieces), Diagnostics()
    node = parse_yaml(text, "convert_config.yaml", diagnostics)
    assert node is not None and not diagnostics.failed
    once = canonical_conversions(text)
    assert change(node, text, once, "convert_config.yaml") is None and canonical_conversions(once) == once


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Two vendors, one of them with a second configuration, and one op."""
    project = Project(root=tmp_path)
    (project.schemas / "ops").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[tool.diopigen]\n", encoding="utf-8")
    for vendor in ("chip", "card"):
        (project.vendors / vendor / "profiles").mkdir(parents=True)
        (project.vendors / vendor / "vendor.yaml").write_text("doc:   A chip.\n", encoding="utf-8")
    (project.vendors / "chip" / "convert_config.yaml").write_text(LOOSE, encoding="utf-8")
    (project.vendors / "card" / "profiles" / "narrow.yaml").write_text(LOOSE, encoding="utf-8")
    return project


def run(project: Project, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["--project", str(project.root), "fmt", *arguments])


def test_every_vendor_s_configurations_are_formatted(project: Project) -> None:
    checked = run(project, "--check")
    assert checked.exit_code == 1 and checked.stderr.splitlines() == [
        "vendors/card/profiles/narrow.yaml is not in canonical form; run 'diopigen fmt'",
        "vendors/chip/convert_config.yaml is not in canonical form; run 'diopigen fmt'",
    ]
    assert run(project).exit_code == 0 and run(project, "--check").exit_code == 0
    assert (project.vendors / "chip" / "convert_config.yaml").read_text(encoding="utf-8") == CLOSE
    assert (project.vendors / "card" / "vendor.yaml").read_text(encoding="utf-8") == "doc:   A chip.\n"


def test_one_vendor(project: Project) -> None:
    checked = run(project, "--check", str(project.vendors / "chip"))
    assert checked.stderr.splitlines() == [
        "vendors/chip/convert_config.yaml is not in canonical form; run 'diopigen fmt'"
    ]


def test_a_configuration_that_is_no_list_stays(project: Project) -> None:
    path = project.vendors / "chip" / "convert_config.yaml"
    path.write_text("diopiAdd:   {layout: ND}\n", encoding="utf-8")
    result = run(project, str(path))
    assert result.exit_code == 1 and path.read_text(encoding="utf-8") == "diopiAdd:   {layout: ND}\n"
    assert (
        "vendors/chip/convert_config.yaml:1:1: error[wrong-kind]: convert_config.yaml is a list of entries"
        in result.output
    )

"""`diopigen fmt`: the canonical form, comment by comment, and what happens to files with mistakes."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from diopigen.cli import cli
from diopigen.commands.fmt import change
from diopigen.diagnostics import Diagnostics
from diopigen.project import Project
from diopigen.source.format.op_style import canonical, modeline
from diopigen.source.yaml.flow import WIDTH
from diopigen.source.yaml.nodes import parse_yaml

LOOSE = """\
# Notes on the file.

double:
  cases:
  - {input:   [8],other: [ 2,3 ]}  # small
  -   input: [4]
      other: [1]
    # nothing else is needed

  kernel: input + input   # its sum
  doc:  Doubles `input`.
  args:  # the least
      input:  Tensor<T>
      other: "Tensor<T>"
  # half compute in float
  where:
    T: float
  variants:
    - out
    - inplace
  out: Tensor<T> like input
# About half.
half:
  args: {input: Tensor<T>}
  doc: Halves.
"""
CLOSE = """\
# yaml-language-server: $schema=../op.schema.json
# Notes on the file.

double:
  doc: Doubles `input`.
  args:  # the least
    input: Tensor<T>
    other: "Tensor<T>"
  out: Tensor<T> like input
  # half compute in float
  where: {T: float}
  variants: [out, inplace]
  kernel: input + input  # its sum
  cases:
    - {input: [8], other: [2, 3]}  # small
    - {input: [4], other: [1]}
    # nothing else is needed

# About half.
half:
  doc: Halves.
  args: {input: Tensor<T>}
"""


def body(text: str) -> list[str]:
    """The canonical lines of `text` behind the first, which is always the same."""
    first, *others = canonical(text).splitlines()
    assert first == modeline()
    return others


def test_everything_at_once() -> None:
    assert canonical(LOOSE) == CLOSE


def test_a_fixed_point() -> None:
    assert canonical(CLOSE) == CLOSE


def test_windows_line_ends_and_a_byte_order_mark() -> None:
    assert canonical("\ufeff" + LOOSE.replace("\n", "\r\n")) == CLOSE


def test_keys_of_blocks_have_an_order_too() -> None:
    text = "a:\n  aten:\n    - ignore: [x]\n      forward: b\n    - c\n  backward:\n    attrs: []\n    grads: [x]\n"
    assert body(text) == [
        "a:",
        "  backward:",
        "    grads: [x]",
        "    attrs: []",
        "  aten:",
        "    - forward: b",
        "      ignore: [x]",
        "    - c",
    ]


def test_a_comment_moves_with_an_entry_that_becomes_the_first_of_an_item() -> None:
    text = "a:\n  aten:\n    - ignore: [x]\n      # the only one\n      forward: b\n"
    assert body(text) == ["a:", "  aten:", "    # the only one", "    - forward: b", "      ignore: [x]"]


def test_order_of_arguments_and_of_a_row_stays() -> None:
    text = "a:\n  args:\n    z: int\n    b: int\n  cases:\n    - {z: 1, b: 2}\n"
    assert body(text) == text.splitlines()


def test_long_text_is_folded() -> None:
    words = "word " * 60
    lines = body(f"a:\n  doc: {words}\n")
    assert lines[:2] == ["a:", "  doc: >-"]
    assert all(line.startswith("    word") and len(line) <= WIDTH for line in lines[2:])
    assert " ".join(line.strip() for line in lines[2:]) == words.strip()
    assert len(lines[2]) + len(" word") > WIDTH


def test_line_breaks_of_folded_text_stay_where_they_fit() -> None:
    text = "a:\n  kernel: >-\n      where(input > 0,\n      input, 0)\n"
    assert body(text) == ["a:", "  kernel: >-", "    where(input > 0,", "    input, 0)"]


def test_literal_text_stays_line_by_line() -> None:
    text = "a:\n  doc: |2\n     indented\n    not\n\n    more\n\n\n  math: x\n"
    assert body(text) == ["a:", "  doc: |2", "     indented", "    not", "", "    more", "  math: x"]


def test_a_long_row_breaks_behind_a_comma() -> None:
    values = ", ".join(f"argument_{n}: [{n}, {n}]" for n in range(9))
    lines = body(f"a:\n  cases:\n    - {{{values}}}\n")
    assert len(lines) == 4 and all(len(line) <= WIDTH for line in lines)
    assert lines[2].startswith("    - {argument_0") and lines[2].endswith(",")
    assert lines[3].startswith("       argument_") and lines[3].endswith("}")


def test_comments_between_brackets_keep_their_lines() -> None:
    text = "a:\n  order: [x,  # first\n     y,\n     # before z\n     z]  # last\n"
    assert body(text) == [
        "a:",
        "  # last",
        "  order: [x,  # first",
        "          y,",
        "          # before z",
        "          z]",
    ]


def test_a_comment_that_does_not_fit_at_the_side_goes_above() -> None:
    text = f"a:\n  name: A  # {'x' * WIDTH}\n"
    assert body(text) == ["a:", f"  # {'x' * WIDTH}", "  name: A"]


def test_a_hash_in_text_is_no_comment() -> None:
    text = 'a:\n  doc: >-  # why\n    not # one\n  math: "a # b"\n  name: x#y\n'
    assert body(text) == ["a:", "  doc: >-  # why", "    not # one", '  math: "a # b"', "  name: x#y"]


def test_an_item_that_is_nothing() -> None:
    assert body("a:\n  order:\n  - x\n  -\n") == ["a:", "  order: [x, null]"]


def test_a_file_of_comments() -> None:
    assert canonical("# one\n\n  # two\n") == f"{modeline()}\n# one\n# two\n"


def test_every_schema_is_in_canonical_form(checkout: Project) -> None:
    files = sorted((checkout.schemas / "ops").glob("*.yaml"))
    assert files
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert canonical(text) == text, f"{path.name}: run 'diopigen fmt'"


@pytest.fixture
def project(miniature: Callable[..., Project]) -> Project:
    return miniature({"loose.yaml": LOOSE, "close.yaml": CLOSE})


def run(project: Project, *words: str) -> Result:
    return CliRunner().invoke(cli, ["--project", str(project.root), "fmt", *words])


def ops(project: Project, name: str) -> Path:
    return project.schemas / "ops" / name


def test_the_command_writes_what_differs(project: Project) -> None:
    kept = ops(project, "close.yaml").stat().st_mtime_ns
    done = run(project)
    expected = "formatted schemas/ops/loose.yaml\n2 files: 1 formatted, 1 unchanged\n"
    assert (done.exit_code, done.output) == (0, expected)
    assert ops(project, "loose.yaml").read_text(encoding="utf-8") == CLOSE
    assert ops(project, "close.yaml").stat().st_mtime_ns == kept
    assert run(project, "--check").exit_code == 0


def test_check_and_diff_write_nothing(project: Project) -> None:
    check = run(project, "--check")
    told = "schemas/ops/loose.yaml is not in canonical form; run 'diopigen fmt'\n"
    assert (check.exit_code, check.output) == (1, told)
    diff = run(project, "--diff")
    assert diff.exit_code == 1
    assert "--- a/schemas/ops/loose.yaml\n+++ b/schemas/ops/loose.yaml\n" in diff.output
    assert "+  where: {T: float}\n" in diff.output and "close.yaml" not in diff.output
    assert ops(project, "loose.yaml").read_text(encoding="utf-8") == LOOSE


def test_only_the_files_that_are_named(project: Project) -> None:
    assert run(project, "--check", str(ops(project, "close.yaml"))).exit_code == 0
    assert run(project, "--check", str(project.schemas / "ops")).exit_code == 1


def test_a_file_with_a_mistake_stays_and_the_others_are_formatted(project: Project) -> None:
    bad = "a:\n  doc: [\n"
    ops(project, "bad.yaml").write_text(bad, encoding="utf-8")
    done = run(project)
    assert done.exit_code == 1
    assert "schemas/ops/bad.yaml:3:1: error[invalid-yaml]:" in done.output
    assert "formatted schemas/ops/loose.yaml" in done.output
    assert ops(project, "bad.yaml").read_text(encoding="utf-8") == bad


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("- a\n- b\n", "error[wrong-kind]: a schema file is a mapping from op names to entries"),
        ("a: 1\na: 2\n", "error[duplicate-key]: 'a' stands twice"),
        ("a: &x 1\n", "error[anchor]: anchors and aliases are not part of the schema language"),
    ],
)
def test_mistakes_are_told_and_nothing_is_written(project: Project, text: str, answer: str) -> None:
    path = ops(project, "loose.yaml")
    path.write_text(text, encoding="utf-8")
    done = run(project)
    assert (done.exit_code, answer in done.output) == (1, True)
    assert path.read_text(encoding="utf-8") == text


def test_a_file_that_would_change_its_meaning_stays(project: Project) -> None:
    text = '{a: {doc: "x"  # in brackets\n  }}\n'
    path = ops(project, "loose.yaml")
    path.write_text(text, encoding="utf-8")
    done = run(project)
    assert (done.exit_code, "error[unformatted]" in done.output) == (1, True)
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        ("a: 1\nb:\n  c: [x, 'no']\n", "b: {c: [x, 'no']}\na: 1\n", None),
        ("a: 1\nb:\n  c: [x, 'no']\n", "a: 1\nb: {c: [x, null]}\n", (3, 10)),
        ("a: 1\nb:\n  c: 1\n", "a: 1\nb: {d: 1}\n", (3, 3)),
        ("a: 1\nb: [1, 2]\n", "a: 1\nb: [1]\n", (2, 4)),
        ("a: 1\nb: 2\n", "[\n", (1, 1)),
        ("a: 1  # x\nb: 2  # y\n# y\n", "a: 1  # x\nb: 2  # y\n", (3, 1)),
        ("a: 1  # x\nb: 2\n", "a: 1  # x\nb: 2  # y\n", (1, 1)),
    ],
)
def test_the_place_that_would_change(before: str, after: str, place: tuple[int, int] | None) -> None:
    node = parse_yaml(before, "a.yaml", Diagnostics())
    assert node is not None
    span = change(node, before, after, "a.yaml")
    assert place == (span if span is None else (span.line, span.column))


def test_a_file_that_is_not_there(project: Project) -> None:
    done = run(project, "nowhere.yaml")
    assert done.exit_code == 1
    assert "error[unreadable]: cannot read this file: No such file or directory" in done.output

"""A mistake in one entry is reported alone: what only follows from it, in other entries and files, is not."""

import re
from collections.abc import Callable

import pytest

from diopigen import pipeline
from diopigen.diagnostics import Diagnostic, Diagnostics, Part, Severity, Span, render_human, without_consequences
from diopigen.pipeline import Stage
from diopigen.project import Project

ENTRY = """\
{name}:
  doc: Something of `input`, as `add` does.
  args: {{input: Tensor<T>, other: Tensor<T>}}
  out: Tensor<T> like broadcast(input, other)
  where: {{T: float}}
  {how}
  cases:
    - {{input: [8], other: [8]}}
"""
ADD = ENTRY.format(name="add", how="kernel: input + other")
SUB = ENTRY.format(name="sub", how="compose: [{t: Tensor<T> like input}, 'add(t, input, other)', 'add(out, t, other)']")
TWICE = ENTRY.format(name="twice", how="compose: ['diopiSub(out, input, other)']")
MISS = ENTRY.format(name="miss", how="compose: ['substract(out, input, other)']").replace(", as `add` does", "")
SOURCE = """\
#include <diopi/functions.h>
namespace impl::chip {
diopiError_t diopiAdd(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      diopiConstTensorHandle_t other) {
    return ::diopiAdd(ctx, out, input, other);
}
}  // namespace impl::chip
"""
VENDOR = {
    "vendor.yaml": "doc: A chip.\nsources: [add.cpp]\n",
    "add.cpp": SOURCE,
    "convert_config.yaml": "- diopiAdd:\n    implementation: chip\n",
}
PATTERN = """\
sums:
  doc: A sum.
  by: [add]
  inputs: {x: Tensor<T>}
  where: {T: float}
  match: [x + x]
  becomes: add(x, x)
  launches: {forward: 1}
  examples: [{x: [4]}]
"""


def lint(project: Project) -> list[str]:
    diagnostics = Diagnostics()
    pipeline.run(project, diagnostics, Stage.VENDOR, vendor="chip")
    lines = [
        line for line in render_human(diagnostics, project.root) if re.match(r"\S+:\d+:\d+: (error|warning)", line)
    ]
    hints = [d.hint for d in diagnostics.ordered() if d.severity is not Severity.NOTE]
    return [f"{line}; {hint}" for line, hint in zip(lines, hints, strict=True)]


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (
            "Tensor<T> like",
            "Tensr<T> like",
            "4:8: error[unknown-type]: there is no type 'Tensr<...>'; did you mean 'Tensor'?",
        ),
        (
            "input: Tensor<T>",
            "input: Tensor<bflot16>",
            "3:24: error[unknown-dtype]: there is no dtype 'bflot16'; did you mean 'bf16'?",
        ),
        (
            "T: float",
            "T: flaot",
            "5:14: error[unknown-dtype]: there is no dtype or set of dtypes 'flaot'; did you mean 'float'?",
        ),
        ("cases:", "casse:", "7:3: error[unknown-key]: 'add' has no property 'casse'; did you mean 'cases'?"),
        ("args:", "arsg:", "3:3: error[unknown-key]: 'add' has no property 'arsg'; did you mean 'args'?"),
        ("doc:", "dco:", "2:3: error[unknown-key]: 'add' has no property 'dco'; did you mean 'doc'?"),
        (
            "input + other",
            "inptu + other",
            "6:11: error[unknown-arg]: the kernel of 'diopiAdd' reads 'inptu', which is not a parameter; "
            "did you mean 'input'?",
        ),
        (
            "input + other",
            "mxa(input, other)",
            "6:11: error[unknown-function]: kernels have no function 'mxa'; did you mean 'max'?",
        ),
        (
            "(input, other)",
            "(input, othre)",
            "4:40: error[unknown-arg]: the shape of 'out' names 'othre', which 'add' does not have; "
            "did you mean 'other'?",
        ),
        (
            "add:",
            "add",
            "2:6: error[invalid-yaml]: mapping values are not allowed in this context; "
            "write ':' behind the key of line 1",
        ),
        ("out: T", "out T", "4:3: error[invalid-yaml]: could not find expected ':'; write ':' behind the key"),
        (
            "of `input`",
            "of: `input`",
            "2:20: error[invalid-yaml]: mapping values are not allowed in this context; "
            "put quotes around text that has ': '",
        ),
        (
            "{T: float}",
            "{T: float",
            "5:10: error[invalid-yaml]: did not find expected ',' or '}'; "
            "close this bracket, and write a comma between what is in it",
        ),
        (
            "  where:",
            "\twhere:",
            "5:1: error[invalid-yaml]: found a tab character that violates indentation; "
            "write spaces instead of the tab",
        ),
        ("of `input`", "of\t`input`", "2:20: error[tab]: this text has a tab; write a space, or '\\t' for LaTeX"),
        ("add:", "Add:", "1:1: error[bad-name]: 'Add' is not an op's name; use lower case, digits and '_'"),
        ("doc:", "args: {}\n  doc:", "4:3: error[duplicate-key]: 'args' stands twice; remove one of them"),
    ],
    ids=lambda text: text if len(text) < 20 else "",
)
def test_the_cause_alone(old: str, new: str, text: str, miniature: Callable[..., Project]) -> None:
    assert ADD.count(old) == 1
    project = miniature({"a.yaml": ADD.replace(old, new) + SUB + TWICE, "b.yaml": MISS}, {"chip": VENDOR})
    (project.schemas / "patterns.yaml").write_text(PATTERN, encoding="utf-8")
    found = lint(project)
    other = (
        "schemas/ops/b.yaml:6:13: error[unknown-function]: there is no op or function 'substract'; "
        "name an op, or a function of the contract"
    )
    # An entry that has no readable name may be what the other entry means.
    assert found == [f"schemas/ops/a.yaml:{text}", *([] if "invalid-yaml" in text or "bad-name" in text else [other])]


def test_without_a_mistake_there_is_nothing(miniature: Callable[..., Project]) -> None:
    project = miniature({"a.yaml": ADD + SUB + TWICE}, {"chip": VENDOR})
    (project.schemas / "patterns.yaml").write_text(PATTERN, encoding="utf-8")
    assert lint(project) == []


@pytest.mark.parametrize("files", [{"a.yaml": ADD + ADD + TWICE}, {"a.yaml": ADD, "b.yaml": ADD + TWICE}])
def test_an_entry_that_kept_the_name_of_its_model(files: dict[str, str], miniature: Callable[..., Project]) -> None:
    """What refers to the name that it should have is not reported."""
    (found,) = lint(miniature(files, {"chip": VENDOR}))
    assert "'add' " in found and ("duplicate-key" in found or "duplicate-op" in found)


def test_a_mistake_that_is_mended_leaves_no_warning_of_sources(miniature: Callable[..., Project]) -> None:
    project = miniature({"a.yaml": ADD.replace("doc:", "dco:")}, {"chip": VENDOR})
    assert len(lint(project)) == 1
    (project.schemas / "ops" / "a.yaml").write_text(ADD, encoding="utf-8")
    assert lint(project) == []


def finding(line: int, *about: str, severity: Severity = Severity.ERROR) -> Diagnostic:
    return Diagnostic(severity=severity, code="c", message="m", span=Span(path="a", line=line, column=1), about=about)


def part(line: int, *names: str, readable: bool = True) -> Part:
    return Part(span=Span(path="a", line=line, column=1), names=frozenset(names), readable=readable)


PARTS = [part(1, "a"), part(10, "b"), part(20, "c")]


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        ([finding(2), finding(11, "a"), finding(21, "b")], [0]),  # one follows from the other
        ([finding(11, "a"), finding(21, "b"), finding(2)], [2]),
        ([finding(2, "b"), finding(11, "a")], [0, 1]),  # a circle
        ([finding(2, severity=Severity.WARNING), finding(11, "a")], [0, 1]),
        ([finding(2), finding(3, "a"), finding(11, "x")], [0, 1, 2]),
        ([finding(2), finding(11, "c")], [0, 1]),
    ],
)
def test_what_follows_from_what(found: list[Diagnostic], kept: list[int]) -> None:
    assert without_consequences(found, PARTS) == [found[at] for at in kept]


def test_a_part_that_cannot_be_read_may_define_any_unknown_name() -> None:
    found = [finding(31), finding(2, "x"), finding(11, "c")]
    assert without_consequences(found, [*PARTS, part(30, readable=False)]) == [found[0], found[2]]

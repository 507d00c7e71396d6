"""`diopigen new`: the entry that it writes, what is still a placeholder in it, and what it refuses."""

import hashlib
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from diopigen.cli import cli
from diopigen.project import Project
from diopigen.source.format.op_style import canonical

ACTIVATION = """\
# yaml-language-server: $schema=../op.schema.json
# What follows is said of the file.
silu:
  doc: Weights `input`.
  math: out = x
  name: SiLU  # the contract's case
  args:
    input: Tensor<T>
    slope: float = 1  # of the ramp
  out: Tensor<T> like input
  where: {T: float}
  variants: [out, inplace]
  kernel: input * sigmoid(input)
  backward:
    name: SiLUGrad
    grads: [input]
    keeps: {input: }
    math: y
    kernel: grad_output
  aten:
    forward: silu
    backward: silu_backward
  cases:
    - {input: [1024]}

named:
  doc: Does it.
  args: {input: Tensor<T>}
  out: Tensor<T> like input
  where: {T: float}
  aten: [scatter.value, sort]
  cases:
    - {input:   [4]}
"""
MISH = """\

mish:
  doc: <what mish computes, in one or two sentences; names of arguments in backquotes>
  math: <the formula, in TeX>
  args:
    input: Tensor<T>
    slope: float = 1
  out: Tensor<T> like input
  where: {T: float}
  variants: [out, inplace]
  kernel: input * sigmoid(input)
  backward:
    grads: [input]
    keeps: {input: }
    kernel: grad_output
  aten:
    forward: mish
    backward: mish_backward
  cases:
    - {input: [1024]}
"""
LEAST = """\
# yaml-language-server: $schema=../op.schema.json
frobnicate:
  doc: <what frobnicate computes, in one or two sentences; names of arguments in backquotes>
  math: <the formula, in TeX>
  args:
    input: Tensor<T>
  out: Tensor<T> like input
  where: {T: float}
  variants: [out, inplace]
  kernel: input
  cases:
    - {input: [1024]}
    - {input: [8, 5, 3]}
    - {input: []}
    - {input: [0, 5]}
"""


@pytest.fixture
def project(miniature: Callable[..., Project], checkout: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("DIOPIGEN_CACHE_DIR", str(checkout.cache))
    return miniature({"activation.yaml": ACTIVATION}, {"chip": {"vendor.yaml": "doc: A chip.\n"}})


def run(project: Project, *words: str) -> Result:
    return CliRunner().invoke(cli, ["--project", str(project.root), *words])


def text(project: Project, topic: str) -> str:
    return (project.schemas / "ops" / f"{topic}.yaml").read_text(encoding="utf-8")


def test_after_the_model_of_another(project: Project) -> None:
    done = run(project, "new", "mish", "--like", "silu")
    assert done.output.splitlines() == [
        "schemas/ops/activation.yaml:35: 'mish', after the model of 'silu'",
        "write:  doc, math",
        "adapt:  args, out, where, variants, kernel, backward, aten, cases",
        "then:   diopigen lint                    # placeholders that are left, and every error",
        "        diopigen explain mish",
        "        make build && .venv/bin/diopi-conformance run --op mish",
    ]
    assert done.exit_code == 0
    assert text(project, "activation") == ACTIVATION + MISH  # what stood there stays as it was
    assert text(project, "activation").splitlines()[34] == "mish:"


def test_lint_says_what_is_still_to_be_written(project: Project) -> None:
    assert run(project, "new", "mish", "--like", "silu").exit_code == 0
    done = run(project, "lint")
    assert done.exit_code == 1
    assert "activation.yaml:36:8: error[placeholder]: the 'doc' of 'mish' is still a placeholder" in done.output
    assert "activation.yaml:37:9: error[placeholder]: the 'math' of 'mish' is still a placeholder" in done.output


def test_the_least_entry_works_once_its_text_is_written(project: Project) -> None:
    done = run(project, "new", "frobnicate")
    assert (done.exit_code, "add:    aten, if torch has operators for it" in done.output) == (0, True)
    written = text(project, "unary")
    assert written == LEAST and canonical(written) == written
    lines = [line for line in written.splitlines() if "<the formula" not in line]
    good = "\n".join(lines).replace("<what frobnicate computes, in one or two sentences; names of", "Keeps `input`.  #")
    (project.schemas / "ops" / "unary.yaml").write_text(good + "\n", encoding="utf-8")
    (project.schemas / "ops" / "activation.yaml").unlink()
    done = run(project, "lint", "--vendor", "chip")
    assert (done.exit_code, done.output) == (0, "1 ops, 2 functions: no problems found\n")


def test_operators_of_torch_are_taken_where_they_are_called_so(project: Project) -> None:
    assert run(project, "new", "erfc").exit_code == 0
    assert "  aten: erfc\n" in text(project, "unary")
    assert run(project, "new", "frob", "--like", "silu", "--topic", "unary").exit_code == 0
    assert run(project, "new", "mine", "--like", "named", "--topic", "unary").exit_code == 0
    assert text(project, "unary").count("aten") == 1


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["silu"], "there is an op 'silu' already, at schemas/ops/activation.yaml:3; edit it or choose another name"),
        (["x", "--like", "silo"], "there is no op 'silo' to take as the model; did you mean 'silu'?"),
        (["Mish"], "'Mish' is no name for an op: lower case, digits and '_', a letter first"),
        (
            ["x", "--topic", "activations"],
            "there is no topic 'activations'; did you mean 'activation'? (for a new topic, make the file first)",
        ),
        (["x", "--topic", "../a"], "'../a' is no name for a topic: lower case, digits and '_', a letter first"),
    ],
)
def test_refusals(project: Project, words: list[str], answer: str) -> None:
    before = {p: hashlib.sha256(p.read_bytes()).digest() for p in (project.schemas / "ops").iterdir()}
    done = run(project, "new", *words)
    assert (done.exit_code, done.output) == (2, answer + "\n")
    assert {p: hashlib.sha256(p.read_bytes()).digest() for p in (project.schemas / "ops").iterdir()} == before


def test_a_file_with_mistakes_is_told_and_nothing_is_written(project: Project) -> None:
    path = project.schemas / "ops" / "bad.yaml"
    path.write_text("a: [\n", encoding="utf-8")
    done = run(project, "new", "frob")
    assert (done.exit_code, "error[invalid-yaml]" in done.output) == (1, True)
    assert not (project.schemas / "ops" / "unary.yaml").exists()

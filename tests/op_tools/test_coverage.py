"""`op-tools coverage`: measurements of several runs as one page, and files that are none."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from op_tools.commands.coverage import command
from op_tools.torch_tests.coverage.measured import Measured, Row


def row(overload: str, dtype: str = "float32", **counts: object) -> Row:
    values = {"calls": 4, "compared": 4, "fallen": 0, "apart": 0, "wrong": 0, "causes": {}, "example": ""}
    return Row(overload=overload, dtype=dtype, **{**values, **counts})


OLD = Measured(
    vendor="droplet",
    torch="2.9.1+cpu",
    schemas="5c" * 32,
    harness="4a" * 32,
    dtypes="float32",
    shards=("1/1",),
    known=("abs", "cholesky", "i0", "mul.out", "relu"),
    registered=("abs", "cholesky", "mul.out", "relu"),
    rows=(
        row("abs"),
        row("abs", "int64"),
        row("cholesky"),
        row("i0", fallen=4, causes={"aten::i0.out (no kernel)": 4}),
        row("mul.out", fallen=1, causes={"aten::mul.out (complex numbers)": 1, "aten::real (a|b)": 1}),
        row("mul.out", "int64", wrong=2, example="call 3, aten.mul.out: result[0] is 1, expected 2"),
    ),
)
NEW = replace(
    OLD, torch="2.15.0", known=("abs", "i0", "mul.out", "relu"), registered=("abs", "relu"), rows=OLD.rows[:2]
)


@pytest.fixture
def tool(tmp_path: Path) -> CliRunner:
    for name, one in (("old", OLD), ("new", NEW)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"tests": [], "coverage": asdict(one)}))
    return CliRunner()


def test_the_page_has_each_operator_beside_each_release(tool: CliRunner, tmp_path: Path) -> None:
    out = tmp_path / "page.md"
    done = tool.invoke(command, [str(tmp_path / "new.json"), str(tmp_path / "old.json"), "--out", str(out)])
    assert done.output.splitlines() == [
        "droplet, torch 2.9.1: fallback 1, native 2, untested 1, wrong 1",
        "droplet, torch 2.15.0: native 1, untested 1",
    ]
    assert done.exit_code == 1  # a result is wrong
    runs, lost, operators = (part.splitlines() for part in out.read_text().split("\n\n## ")[1:])
    assert runs[4:] == [
        "| droplet, torch 2.9.1 | float32 | 4 of 5 | 2 | 1 | 1 | 1 | `5c5c5c5c5c5c` | `4a4a4a4a4a4a` |",
        "| droplet, torch 2.15.0 | float32 | 2 of 4 | 1 | 0 | 0 | 1 | `5c5c5c5c5c5c` | `4a4a4a4a4a4a` |",
    ]
    assert lost[2:] == [
        "- droplet, torch 2.15.0, against 2.9.1: `cholesky`: torch has no such operator.",
        "- droplet, torch 2.15.0, against 2.9.1: `mul.out`: no kernel.",
    ]
    assert operators[2:] == [
        "| operator | droplet, torch 2.9.1 | droplet, torch 2.15.0 |",
        "|---|---|---|",
        "| `abs` | native: float32, int64 | native: float32, int64 |",
        "| `cholesky` | native: float32 | not in this torch |",
        "| `i0` | fallback: float32 (no kernel) |  |",
        "| `mul.out` | fallback: float32 (1 of 4 calls; aten::real (a\\|b); complex numbers)<br>"
        "wrong: int64 (2 of 4 calls; call 3, aten.mul.out: result[0] is 1, expected 2) |  |",
        "| `relu` | untested | untested |",
    ]


def test_parts_of_a_run_are_one(tool: CliRunner, tmp_path: Path) -> None:
    first = replace(NEW, shards=("1/2",))
    (tmp_path / "first.json").write_text(json.dumps({"coverage": asdict(first)}))
    second = replace(NEW, shards=("2/2",), rows=(row("abs", calls=2, compared=2, fallen=1, causes={"x (forced)": 1}),))
    (tmp_path / "second.json").write_text(json.dumps({"coverage": asdict(second)}))
    out = tmp_path / "page.md"
    done = tool.invoke(command, [*(str(tmp_path / f"{name}.json") for name in ("second", "first")), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "| droplet, torch 2.15.0 | float32, parts 1/2, 2/2 | 2 of 4 | 0 | 1 | 0 | 1 |" in out.read_text()
    assert "| `abs` | native: int64<br>fallback: float32 (1 of 6 calls; x (forced)) |" in out.read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "FILE: no report of op-tools torch-tests: Expecting property name enclosed in double quotes: "),
        ("[]", "FILE: no measurement; 'op-tools torch-tests --suite opinfo --coverage' makes one"),
        ('{"tests": []}', "FILE: no measurement; 'op-tools torch-tests --suite opinfo --coverage' makes one"),
        (json.dumps({"coverage": {**asdict(OLD), "version": 9}}), "FILE: it is of version 9, not 1"),
        (
            json.dumps({"coverage": {**asdict(OLD), "torch": None}}),
            "FILE: no report of op-tools torch-tests: 'torch': Input should be a valid string",
        ),
        (json.dumps({"coverage": asdict(NEW)}), "the part 1/1 of droplet with torch 2.15.0 is there twice"),
        (
            json.dumps({"coverage": asdict(replace(NEW, shards=("2/2",), harness="0"))}),
            "the runs of droplet with torch 2.15.0 differ in 'harness': measure all shards with the same",
        ),
    ],
)
def test_what_is_no_measurement_or_does_not_belong(tool: CliRunner, tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    done = tool.invoke(command, [str(tmp_path / "new.json"), str(path)])
    assert done.exit_code == 2
    assert done.stderr.startswith(f"op-tools: {said.replace('FILE', str(path))}") and done.stderr.count("\n") == 1

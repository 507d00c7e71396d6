"""convert_config.yaml: what is read from it, and the exact text of every complaint."""

from pathlib import Path

import pytest

from diopigen.diagnostics import Diagnostics, render_human
from diopigen.model.program import Program
from diopigen.model.vendor import Rule
from diopigen.source.convert_config import read_convert_config


def read(contract: Program, folder: Path, text: str) -> tuple[tuple[Rule, ...], Diagnostics]:
    path = folder / "convert_config.yaml"
    path.write_text(text, encoding="utf-8")
    diagnostics = Diagnostics()
    rules = read_convert_config(path, path.name, contract.functions, contract.dtypes, diagnostics)
    return rules, diagnostics


def words(rule: Rule) -> list[tuple[str, str]]:
    return [(cast.source.word, cast.target.word) for cast in rule.casts]


def test_established_form(contract: Program, tmp_path: Path) -> None:
    text = """
- common_config:
    dtype: (int64)->int32, (float64)->float32
    layout: NCHW
- diopiConvolution2d:
    dtype: (float64)->float32
    tensor_dtype: {bias: (float16)->float32}
    layout: NCHW, weight(NHWC)
- ops: [diopiAdd, diopiAddInp]
  layout: ND
"""
    rules, diagnostics = read(contract, tmp_path, text)
    assert diagnostics.found == []
    common, conv, listed = rules
    assert common.functions == () and words(common) == [("int64", "int32"), ("float64", "float32")]
    assert [item.names for item in common.layouts] == [("NCHW",)]
    assert [name for name, _ in conv.functions] == ["diopiConvolution2d"]
    assert [(t.param, t.casts[0].source.word) for t in conv.tensor_casts] == [("bias", "float16")]
    assert [(item.param, item.names) for item in conv.layouts] == [(None, ("NCHW",)), ("weight", ("NHWC",))]
    assert [name for name, _ in listed.functions] == ["diopiAdd", "diopiAddInp"]
    assert [item.names for item in listed.layouts] == [()]


def test_arguments_as_folded_text(contract: Program, tmp_path: Path) -> None:
    text = """
- diopiAdd:
    tensor_dtype:
        input:(float64)->float32
        out:(float64)->float32, (int64)->int32
"""
    rules, diagnostics = read(contract, tmp_path, text)
    assert diagnostics.found == []
    assert [(t.param, len(t.casts)) for t in rules[0].tensor_casts] == [("input", 1), ("out", 2)]


def test_several_sources_and_flags(contract: Program, tmp_path: Path) -> None:
    text = "- diopiSgd: {dtype: '(float16, bfloat16)->float32', contiguous: true, supportComposite: true}\n"
    rules, diagnostics = read(contract, tmp_path, text)
    assert diagnostics.found == []
    assert words(rules[0]) == [("float16", "float32"), ("bfloat16", "float32")]
    assert [c.wanted for c in rules[0].contiguous] == [True] and rules[0].composite is True


def test_absent_and_empty_files_have_no_rules(contract: Program, tmp_path: Path) -> None:
    diagnostics = Diagnostics()
    missing = tmp_path / "none.yaml"
    assert read_convert_config(missing, "none", contract.functions, contract.dtypes, diagnostics) == ()
    rules, found = read(contract, tmp_path, "# nothing\n")
    assert rules == () and found.found == [] and diagnostics.found == []


def test_a_bad_entry_does_not_hide_the_next(contract: Program, tmp_path: Path) -> None:
    text = "- diopiAdd: {dtype: (flot64)->float32}\n- diopiSgd: {dtype: (float64)->float32}\n"
    rules, diagnostics = read(contract, tmp_path, text)
    assert [name for rule in rules for name, _ in rule.functions] == ["diopiSgd"]
    assert [d.code for d in diagnostics.found] == ["unknown-dtype"]


COMPLAINTS = {
    "unknown function": (
        "- diopiAdddd: {dtype: (float64)->float32}",
        "1:3: error[unknown-function]: there is no function 'diopiAdddd'",
        "^^^^^^^^^^ did you mean 'diopiAdd'?",
    ),
    "unknown key": (
        "- diopiAdd: {dtyp: (float64)->float32}",
        "1:14: error[unknown-key]: 'diopiAdd' has no property 'dtyp'",
        "^^^^ did you mean 'dtype'?",
    ),
    "unknown dtype": (
        "- diopiAdd: {dtype: (float63)->float32}",
        "1:22: error[unknown-dtype]: there is no dtype 'float63'",
        "^^^^^^^ did you mean 'float64'?",
    ),
    "unknown argument": (
        "- diopiAdd: {tensor_dtype: {inptu: (float64)->float32}}",
        "1:29: error[unknown-arg]: 'diopiAdd' has no tensor 'inptu'",
        "^^^^^ did you mean 'input'?",
    ),
    "argument that is no tensor": (
        "- diopiAdd: {layout: alpha(NCHW)}",
        "1:22: error[unknown-arg]: 'diopiAdd' has no tensor 'alpha'",
        "^^^^^ its tensors are out, input, other",
    ),
    "unknown layout": (
        "- diopiConvolution2d: {layout: NHCW}",
        "1:32: error[unknown-layout]: there is no layout 'NHCW'",
        "^^^^ did you mean 'NHWC'?",
    ),
    "missing bracket": (
        "- diopiAdd: {dtype: float64->float32}",
        "1:21: error[conversion-syntax]: expected '(' before 'float64'",
        "^^^^^^^ write (float64)->float32, (int64)->int32",
    ),
    "unclosed bracket": (
        "- diopiConvolution2d:\n    layout: NCHW, weight(NHWC",
        "2:29: error[conversion-syntax]: expected ')' before the end",
        "^ write NCHW or NCHW, weight(NHWC)",
    ),
    "duplicate entry": (
        "- diopiAdd: {dtype: (float64)->float32}\n- diopiAdd: {dtype: (int64)->int32}",
        "2:3: error[duplicate-entry]: 'diopiAdd' has an entry already",
        "1:3: note: the first is here",
    ),
    "chain": (
        "- diopiAdd: {dtype: '(float64)->float32, (float32)->float16'}",
        "1:23: error[cast-chain]: 'float64' is cast to 'float32', which is cast away itself",
        "^^^^^^^ cast 'float64' to 'float16'",
    ),
    "cast twice": (
        "- diopiAdd: {dtype: '(float64)->float32, (float64)->float16'}",
        "1:43: error[duplicate-cast]: 'float64' is cast twice",
        "1:23: note: the first is here",
    ),
    "cast to itself": (
        "- diopiAdd: {dtype: (float64)->float64}",
        "1:22: error[cast-to-itself]: 'float64' is cast to itself",
        "^^^^^^^",
    ),
    "empty": ("- diopiAdd:", "1:3: error[empty]: 'diopiAdd' says nothing", "its properties are dtype"),
    "empty dtype": ("- diopiAdd: {dtype: }", "1:14: error[empty]: 'dtype' says nothing", "^^^^^"),
    "not a list": (
        "common_config: {dtype: (float64)->float32}",
        "1:1: error[wrong-kind]: convert_config.yaml is a list of entries",
        "write - diopiAdd: ...",
    ),
    "key without a function": (
        "- diopiAdd: {dtype: (float64)->float32}\n  layout: ND",
        "2:3: error[stray-key]: 'layout' stands outside of an entry",
        "indent it below a function",
    ),
    "argument in common_config": (
        "- common_config: {layout: 'NHWC, weight(NCHW)'}",
        "1:34: error[unknown-arg]: 'common_config' speaks of all tensors, not of 'weight'",
        "write it in the entry of a function",
    ),
    "flag": (
        "- diopiSgd: {contiguous: maybe}",
        "1:26: error[unknown-arg]: 'diopiSgd' has no tensor 'maybe'",
        "^^^^^ its tensors are w, dw, buf",
    ),
    "ops": ("- {ops: diopiAdd, layout: ND}", "1:9: error[wrong-kind]: 'ops' needs a list of functions", "^^^^^^^^"),
}


@pytest.mark.parametrize("name", COMPLAINTS)
def test_complaint(contract: Program, tmp_path: Path, name: str) -> None:
    text, first, later = COMPLAINTS[name]
    _, diagnostics = read(contract, tmp_path, text + "\n")
    rendered = "\n".join(render_human(diagnostics, tmp_path))
    assert rendered.startswith(f"convert_config.yaml:{first}")
    assert later in rendered
    assert len(diagnostics.found) == 1


def test_a_folder_is_no_file(contract: Program, tmp_path: Path) -> None:
    diagnostics = Diagnostics()
    rules = read_convert_config(tmp_path, "convert_config.yaml", contract.functions, contract.dtypes, diagnostics)
    assert rules == () and [(d.code, d.message) for d in diagnostics.found] == [
        ("unreadable", "cannot read this file: Is a directory")
    ]

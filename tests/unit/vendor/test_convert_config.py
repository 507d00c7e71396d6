"""convert_config.yaml: what is read from it, and the exact text of every complaint."""

from pathlib import Path

import pytest

from diopigen.diagnostics import Diagnostics, render_human
from diopigen.model.program import Program
from diopigen.model.vendor import Rule
from diopigen.source.vendor.convert_config import read_convert_config


def read(contract: Program, folder: Path, text: str) -> tuple[tuple[Rule, ...], Diagnostics]:
    path = folder / "convert_config.yaml"
    path.write_text(text, encoding="utf-8")
    diagnostics = Diagnostics()
    rules = read_convert_config(path, path.name, contract.functions, contract.dtypes, diagnostics)
    return rules, diagnostics


def words(rule: Rule) -> list[tuple[str, str]]:
    return [(cast.source.word, cast.target.word) for said in rule.casts if said.param is None for cast in said.casts]


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
    assert [(said.param, said.casts[0].source.word) for said in conv.casts] == [("bias", "float16"), (None, "float64")]
    assert [(item.param, item.names) for item in conv.layouts] == [(None, ("NCHW",)), ("weight", ("NHWC",))]
    assert [name for name, _ in listed.functions] == ["diopiAdd", "diopiAddInp"]
    assert [item.names for item in listed.layouts] == [()]


def test_the_last_entry_of_a_function_holds(contract: Program, tmp_path: Path) -> None:
    text = """
- common_config: {layout: NCHW}
- ops: [diopiAdd, diopiSgd]
  dtype: (float64)->float32
- diopiAddInp: {dtype: (float64)->float32}
- diopiAdd: {contiguous: true}
- diopiAddInp: {dtype: (int64)->int32}
- diopiAdd: {dtype: (int64)->int32}
"""
    rules, diagnostics = read(contract, tmp_path, text)
    assert [(str(d.span), d.code) for d in diagnostics.ordered()] == [
        (f"convert_config.yaml:{place}", "overridden-entry") for place in ("3:9", "5:3", "6:3")
    ]
    said = [([name for name, _ in rule.functions], words(rule), rule.contiguous) for rule in rules]
    assert said == [
        ([], [], ()),
        (["diopiSgd"], [("float64", "float32")], ()),
        (["diopiAddInp"], [("int64", "int32")], ()),
        (["diopiAdd"], [("int64", "int32")], ()),
    ]


def test_arguments_as_folded_text(contract: Program, tmp_path: Path) -> None:
    text = """
- diopiAdd:
    tensor_dtype:
        input:(float64)->float32
        out:(float64)->float32, (int64)->int32
"""
    rules, diagnostics = read(contract, tmp_path, text)
    assert diagnostics.found == []
    assert [(said.param, len(said.casts)) for said in rules[0].casts] == [("input", 1), ("out", 2)]


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
        "- Add: {dtype: (float64)->float32}",
        "1:3: error[unknown-function]: there is no function 'Add'",
        "^^^ functions begin with 'diopi'",
    ),
    "common_config misspelled": (
        "- comon_config: {dtype: (float64)->float32}",
        "1:3: error[unknown-function]: there is no function 'comon_config'",
        "^^^^^^^^^^^^ did you mean 'common_config'?",
    ),
    "function of another contract": (
        "- diopiAdddd: {dtype: (float64)->float32}",
        "1:3: warning[absent-function]: this contract has no function 'diopiAdddd', so its entry has no effect",
        "^^^^^^^^^^ did you mean 'diopiAdd'?",
    ),
    "function like no other": (
        "- diopiWxyz: {layout: NHWC}",
        "1:3: warning[absent-function]: this contract has no function 'diopiWxyz', so its entry has no effect",
        "^^^^^^^^^ keep it for a contract that has it",
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
        "- common_config: {layout: NCHW}\n- common_config: {dtype: (int64)->int32}",
        "2:3: error[duplicate-entry]: 'common_config' has an entry already",
        "1:3: note: the first is here",
    ),
    "overridden entry": (
        "- diopiAdd: {dtype: (float64)->float32}\n- diopiAdd: {dtype: (int64)->int32}",
        "1:3: warning[overridden-entry]: 'diopiAdd' has a later entry, which replaces it",
        "^^^^^^^^ remove this one",
    ),
    "place of the later entry": (
        "- diopiAdd: {dtype: (float64)->float32}\n- ops: [diopiSgd, diopiAdd]\n  layout: ND",
        "1:3: warning[overridden-entry]: 'diopiAdd' has a later entry, which replaces it",
        "2:19: note: the later one is here",
    ),
    "function twice in one entry": (
        "- ops: [diopiAdd, diopiAdd]\n  dtype: (float64)->float32",
        "1:9: warning[overridden-entry]: 'diopiAdd' has a later entry, which replaces it",
        "1:19: note: the later one is here",
    ),
    "chain": (
        "- diopiAdd: {dtype: '(float64)->float32, (float32)->float16'}",
        "1:23: error[cast-chain]: 'float64' is cast to 'float32', which is itself cast",
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
        "^^^^^^^ remove it: 'float64' stays as it is",
    ),
    "empty": (
        "- diopiAdd:",
        "1:3: warning[empty-entry]: 'diopiAdd' says nothing",
        "^^^^^^^^ remove it, or indent its contents below it",
    ),
    "nothing at all": ("-\n  # - diopiAdd:", "1:2: warning[empty-entry]: this entry is empty", "^ remove it"),
    "empty dtype": (
        "- diopiSgd: {dtype: , contiguous: true}",
        "1:14: warning[empty-entry]: 'dtype' says nothing",
        "^^^^^ remove it",
    ),
    "dtype of another kind": (
        "- diopiAdd: {dtype: {float64: float32}}",
        "1:21: error[wrong-kind]: 'dtype' needs a string",
        "write (float64)->float32",
    ),
    "layout of another kind": (
        "- diopiConvolution2d: {layout: {weight: NHWC}}",
        "1:32: error[wrong-kind]: 'layout' needs a string",
        "write NCHW, weight(NHWC)",
    ),
    "not a list": (
        "common_config: {dtype: (float64)->float32}",
        "1:1: error[wrong-kind]: convert_config.yaml is a list of entries",
        "write - diopiAdd: ...",
    ),
    "key without a function": (
        "- diopiAdd: {dtype: (float64)->float32}\n  layout: ND",
        "2:3: error[stray-key]: 'layout' is outside of an entry",
        "indent it below a function",
    ),
    "argument in common_config": (
        "- common_config: {layout: 'NHWC, weight(NCHW)'}",
        "1:34: error[unknown-arg]: 'common_config' applies to all tensors, not to 'weight'",
        "write it in the entry of a function",
    ),
    "flag": (
        "- diopiSgd: {contiguous: maybe}",
        "1:26: error[unknown-arg]: 'diopiSgd' has no tensor 'maybe'",
        "^^^^^ its tensors are w, dw, buf",
    ),
    "flag of YAML 1.1": (
        "- diopiSgd: {contiguous: no}",
        "1:26: error[wrong-kind]: 'contiguous' is true or false",
        "^^ did you mean 'false'?",
    ),
    "composition of YAML 1.1": (
        "- diopiSgd: {supportComposite: yes}",
        "1:32: error[wrong-kind]: 'supportComposite' is true or false",
        "^^^ did you mean 'true'?",
    ),
    "argument twice": (
        "- diopiConvolution2d: {layout: 'weight(NHWC), weight(NCHW)'}",
        "1:47: error[duplicate-key]: 'weight' stands twice",
        "1:33: note: the first is here",
    ),
    "layout twice": (
        "- diopiConvolution2d: {layout: 'NHWC, NHWC'}",
        "1:39: warning[rule-never-applies]: 'NHWC' stands twice",
        "1:33: note: the first is here",
    ),
    "layout in lower case": (
        "- diopiConvolution2d: {layout: nhwc}",
        "1:32: error[unknown-layout]: there is no layout 'nhwc'",
        "^^^^ did you mean 'NHWC'?",
    ),
    "cast there and back": (
        "- diopiAdd: {dtype: '(float64)->float32, (float32)->float64'}",
        "1:23: error[cast-chain]: 'float64' is cast to 'float32', which is itself cast",
        "^^^^^^^ remove one of them",
    ),
    "no blank behind a colon": (
        "- diopiAdd:\n    dtype:(float64)->float32",
        "2:5: error[wrong-kind]: 'diopiAdd' needs a mapping",
        "write a space after the colon",
    ),
    "entry inside an entry": (
        "- diopiAdd:\n  dtype: (float64)->float32\n  diopiSgd:\n    dtype: (float64)->float32",
        "3:3: error[unknown-key]: 'diopiAdd' has no property 'diopiSgd'",
        "^^^^^^^^ write - diopiSgd: for an entry of its own",
    ),
    "tab": (
        "- diopiAdd:\n\tdtype: (float64)->float32",
        "2:1: error[invalid-yaml]: found character that cannot start any token",
        "^ write spaces instead of the tab",
    ),
    "full-width comma": (
        "- diopiAdd:\n    dtype: (float64)->float32\uff0c(int64)->int32  # \uff0c in a comment",
        "2:30: error[wide-character]: '\uff0c' is not ','",
        "^ write ','",
    ),
    "full-width colon": (
        "- diopiAdd\uff1a\n    dtype: (float64)->float32",
        "1:11: error[wide-character]: '\uff1a' is not ':'",
        "^ write ':'",
    ),
    "full-width bracket": (
        "- diopiAdd:\n    dtype: \uff08float64)->float32",
        "2:12: error[wide-character]: '\uff08' is not '('",
        "^ write '('",
    ),
    "full-width letter": (
        "- diopiConvolution2d: {layout: NHW\uff23}",
        "1:35: error[wide-character]: '\uff23' is not 'C'",
        "^ write 'C'",
    ),
    "arrow": (
        "- diopiAdd:\n    dtype: (float64)\u2192float32",
        "2:21: error[wide-character]: '\u2192' is not '->'",
        "^ write '->'",
    ),
    "curved quotes": (
        "- diopiAdd: {dtype: \u201c(float64)->float32'}",
        "1:21: error[wide-character]: '\u201c' is not '\"'",
        "^ write '\"'",
    ),
    "blank of another kind": (
        "- diopiAdd:\n    dtype:\u00a0(float64)->float32",
        "2:11: error[wide-character]: the blank U+00A0 is not a blank",
        "^ write a blank",
    ),
    "a mapping among ops": (
        "- {ops: [diopiAdd, {diopiSgd: }], layout: ND}",
        "1:9: error[wrong-kind]: 'ops' needs a list of functions",
        "write ops: [diopiAdd]",
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


# What others call a dtype, and the contract's word that is proposed.
SPELLINGS = {
    "torch.float32": "float32",
    "f32": "float32",
    "double": "float64",
    "half": "float16",
    "fp16": "float16",
    "bf16": "bfloat16",
    "diopi_dtype_int8": "int8",
    "int32_t": "int32",
    "Float64": "float64",
    "long": "int64",
    "cdouble": "complex128",
    "bfloat": "bfloat16",
}


@pytest.mark.parametrize(("spelled", "word"), SPELLINGS.items())
def test_other_spellings_of_dtypes(contract: Program, tmp_path: Path, spelled: str, word: str) -> None:
    _, diagnostics = read(contract, tmp_path, f"- diopiAdd: {{dtype: ({spelled})->uint8}}\n")
    assert [(d.code, d.message, d.hint, d.span.column) for d in diagnostics.found] == [
        ("unknown-dtype", f"there is no dtype '{spelled}'", f"did you mean '{word}'?", 22)
    ]


@pytest.mark.parametrize("quote", ["", "'", '"'])
def test_places_in_texts_of_several_lines(contract: Program, tmp_path: Path, quote: str) -> None:
    text = f"- diopiAdd:\n    dtype: {quote}(int64)->int32,\n           (int8, \n      flot64)->float32{quote}\n"
    _, diagnostics = read(contract, tmp_path, text)
    assert [(d.code, d.span.line, d.span.column, d.span.length) for d in diagnostics.found] == [
        ("unknown-dtype", 4, 7, 6)
    ]


def test_places_in_a_folded_block(contract: Program, tmp_path: Path) -> None:
    _, diagnostics = read(
        contract, tmp_path, "- diopiAdd:\n    dtype: >-\n      (int64)->int32,\n      (flot64)->float32\n"
    )
    assert [(d.code, d.span.line, d.span.column) for d in diagnostics.found] == [("unknown-dtype", 4, 8)]


def test_entries_for_other_contracts_are_read(contract: Program, tmp_path: Path) -> None:
    rules, diagnostics = read(contract, tmp_path, "- diopiWxyz: {dtype: (float63)->int8, tensor_dtype: {x: none}}\n")
    assert rules == () and [d.code for d in diagnostics.found] == ["absent-function", "unknown-dtype"]

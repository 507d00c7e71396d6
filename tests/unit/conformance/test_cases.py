"""What cases follow from the rows of a schema."""

import json
from dataclasses import replace

import pytest

from diopigen.model.case import Axes, Fill, View
from diopigen.model.program import Program
from diopigen.passes.plan_cases import plan_cases
from diopigen.targets import conformance

ADD = """\
add:
  doc: Adds `other` to `input`.
  args:
    input: Tensor<T>
    other: Tensor<U> | Scalar
    alpha: Scalar = 1
  out: Tensor<promote(T, U)> like broadcast(input, other)
  where: {T: any, U: any}
  variants: [out, inplace]
  kernel: input + alpha * other
  aten: add
  cases:
    - {input: [16], other: [16]}
    - {input: [4, 1], other: [4, 5], alpha: 2}
    - {input: [3, 4], other: 0.5}
    - {input: [0, 4], other: [4]}
"""

CONV = """\
conv:
  doc: Convolves.
  args: {input: Tensor<T>, bias: Tensor<T>?, groups: int = 1}
  out: Tensor<T> like input
  where: {T: float}
  layouts: [NCHW, NHWC]
  backward:
    grads: [input]
    keeps: {input: }
  cases:
    - {input: [2, 3, 4, 5]}
"""

RESIZE = """\
resize:
  doc: Stretches `input` to `size` as `mode` says.
  args: {input: Tensor<T>, size: "int[2]", align_corners: bool, mode: "str(bilinear, bicubic)"}
  out: Tensor<T> like resized(input, size)
  where: {T: float}
  aten:
    - forward: upsample_bilinear2d
      rename: {size: output_size}
      require: {scales_h: null, scales_w: null}
      derive: {mode: '"bilinear"'}
    - forward: upsample_bicubic2d
      rename: {size: output_size}
      require: {scales_h: null, scales_w: null}
      derive: {mode: '"bicubic"'}
  cases:
    - {input: [2, 3, 4, 5], size: [7, 6], align_corners: true, mode: bicubic}
"""


def ids(program: Program, symbol: str) -> list[str]:
    return [case.id for case in program.cases if case.symbol == symbol]


def test_ids_are_unique_and_name_the_choices(program):
    found, diagnostics = program(ADD)
    assert not diagnostics.failed
    every = [case.id for case in found.cases]
    assert len(set(every)) == len(every)
    assert "add/f32/strided/0" in every
    assert "add/f32-i64/0" in every


def test_the_words_of_an_id_are_those_of_the_axes_that_are_not_as_usual(program):
    found, _ = program(ADD)
    words = {case.id: case.axes.words for case in found.cases}
    assert (words["add/f32/0"], words["add_scalar/f16/2"]) == ((), ())
    assert words["add_inp/f32/aliased/0"] == ("aliased",)
    assert Axes(layout="nhwc", view=View.STRIDED, fill=Fill.LARGE).words == ("nhwc", "strided", "large")


@pytest.mark.parametrize(
    ("symbol", "word"),
    [
        ("diopiAddInpScalar", "add_inp_scalar"),
        ("diopiConvolution2d", "convolution2d"),
        ("diopiNLLLossBackward", "nll_loss_backward"),
        ("diopiEmbeddingRenorm_", "embedding_renorm_"),
        ("diopiRotaryEmbeddingV2", "rotary_embedding_v2"),
        ("diopiLinalgQR", "linalg_qr"),
    ],
)
def test_ids_begin_with_the_function_s_symbol_in_snake_case(program, symbol, word):
    found, _ = program(ADD)
    assert replace(found.functions[0], symbol=symbol).word == word


def test_every_type_runs_and_full_rows_carry_them(program):
    found, _ = program(ADD)
    types = {case_id.split("/")[1] for case_id in ids(found, "diopiAdd")}
    assert {"bool", "i8", "u8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"} <= types
    empty = [i for i in ids(found, "diopiAdd") if i.endswith("/3")]
    assert empty == ["add/f32/3"]


def test_an_in_place_form_keeps_its_tensor(program):
    found, _ = program(ADD)
    rows = {case_id.split("/")[-1] for case_id in ids(found, "diopiAddInp")}
    assert rows == {"0", "3"}  # row 1 would grow the input
    types = {case_id.split("/")[1] for case_id in ids(found, "diopiAddInp")}
    assert "i64-f32" not in types and "f32-i64" in types


def test_a_scalar_form_takes_rows_with_numbers(program):
    found, _ = program(ADD)
    cases = [case for case in found.cases if case.symbol == "diopiAddScalar"]
    assert {case.id.split("/")[-1] for case in cases} == {"2"}
    outs = {case.id.split("/")[1]: dict(case.dtypes)["out"].name for case in cases}
    assert (outs["i32"], outs["f16"]) == ("f32", "f16")


def test_backward_functions_and_layouts(program):
    found, diagnostics = program(CONV)
    assert not diagnostics.failed
    assert "conv/f32/nhwc/0" in ids(found, "diopiConv")
    case = next(c for c in found.cases if c.symbol == "diopiConvBackward")
    assert [name for name, _ in case.dtypes] == ["grad_input", "grad_output", "input"]
    assert [name for name, _ in case.forward] == ["out", "input", "bias"]


def test_rows_that_do_not_fit_are_reported(program):
    rows = "    - {inputs: [2], other: [2]}\n    - {input: 3, other: [2]}\n    - {other: [2]}\n"
    _, diagnostics = program(ADD + rows)
    assert [(d.code, d.message, d.hint) for d in diagnostics.ordered()] == [
        ("case-missing-argument", "the case of 'add' lacks 'input'", "add 'input: ...'"),
        ("case-unknown-argument", "'add' has no argument 'inputs'", "did you mean 'input'?"),
        ("case-wrong-kind", "'input' is a tensor: give its shape", None),
        ("case-missing-argument", "the case of 'add' lacks 'input'", "add 'input: ...'"),
    ]


def test_a_function_without_a_case_is_told(program):
    _, diagnostics = program(CONV.split("  cases:")[0])
    assert {d.code for d in diagnostics.found} == {"no-case"}


def test_the_plan_is_the_same_each_time(program):
    found, diagnostics = program(ADD, aten=True)
    assert not diagnostics.failed
    (first,) = conformance.outputs(found, lambda name, view: "")
    (again,) = conformance.outputs(plan_cases(found, diagnostics), lambda name, view: "")
    assert first.text == again.text
    document = json.loads(first.text)
    case = next(entry for entry in document["cases"] if entry["id"] == "add_inp/f32/strided/0")
    assert (case["view"], "layout" in case, "fill" in case, "change" in case) == ("strided", False, False, False)
    call = document["functions"]["diopiAdd"]["references"][0]
    assert call["overload"] == "add.Tensor"
    assert [arg["name"] for arg in call["args"]] == ["self", "other", "alpha"]


def test_an_operator_is_a_reference_only_for_the_word_that_its_binding_derives(program):
    found, diagnostics = program(RESIZE, aten=True)
    assert not diagnostics.failed, diagnostics.found
    (output,) = conformance.outputs(found, lambda name, view: "")
    calls = json.loads(output.text)["functions"]["diopiResize"]["references"]
    words = {call["overload"]: call["constants"]["mode"] for call in calls}
    assert words["upsample_bilinear2d"] == "bilinear"
    assert words["upsample_bicubic2d"] == "bicubic"

"""What cases follow from the rows of a schema."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from diopi_conformance.cases.plan import plan_of
from diopi_conformance.values.inputs import draw_inputs
from diopigen.model.case import Axes, Fill, View
from diopigen.model.program import Program
from diopigen.passes.cases.plan import plan_cases
from diopigen.passes.contract.elements import promote
from diopigen.targets import conformance
from diopigen.vocabulary.dtype import Kind

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
    assert {"add/f32/0", "add/f32/1", "add/f32/3", "add_inp/f32/0", "add_scalar/f32/2"} <= set(every)
    for case in found.cases:
        types = [dtype.name for _, dtype in case.elements]
        word = types[0] if len(set(types)) == 1 else "-".join(types)
        assert case.id.split("/")[1:-1] == [word, *case.axes.words]


def test_the_words_of_axes_are_those_that_are_not_as_usual():
    assert Axes().words == ()
    assert Axes(view=View.ALIASED, change="zero").words == ("aliased", "zero")
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


def test_every_type_runs_and_full_rows_carry_what_is_unusual(program):
    found, _ = program(ADD)
    types = {case_id.split("/")[1] for case_id in ids(found, "diopiAdd")}
    assert {"bool", "i8", "u8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "f32-i64"} <= types
    assert [i for i in ids(found, "diopiAdd") if i.endswith("/3")] == ["add/f32/3"]  # it has no elements


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


def changed(program: Program, symbol: str) -> dict[str, dict[str, object]]:
    """The values of the first case of each change."""
    found: dict[str, dict[str, object]] = {}
    for case in program.cases:
        if case.symbol == symbol:
            found.setdefault(case.axes.change, dict(case.values))
    return found


def test_changes_reshape_all_tensors_alike(program):
    found, _ = program(ADD.replace("[4, 1], other: [4, 5]", "[2, 4, 5], other: [4, 5]"))
    rows = changed(found, "diopiAdd")
    assert rows["zero-first"] == {"input": (0, 4, 5), "other": (4, 5), "alpha": 2}
    assert rows["zero-middle"] == {"input": (2, 0, 5), "other": (0, 5), "alpha": 2}
    assert rows["one-first"] == {"input": (1, 4, 5), "other": (4, 5), "alpha": 2}
    assert rows["0-d"]["input"] == rows["0-d"]["other"] == ()
    zeros = [dict(c.values) for c in found.cases if c.axes.change == "zero" and c.symbol == "diopiAdd"]
    assert {"input": (2, 4, 0), "other": (4, 0), "alpha": 2} in zeros or {"input": (0,), "other": (0,)} in zeros


def test_each_input_that_broadcasts_is_the_smaller_one_once(program):
    found, _ = program(ADD.replace("[4, 1], other: [4, 5]", "[4, 5], other: [4, 5]"))
    words = set(changed(found, "diopiAdd"))
    assert {"broadcast-input", "broadcast-other"} <= words
    shapes = {
        (v["input"], v["other"]) for c in found.cases if c.axes.change == "broadcast-input" for v in [dict(c.values)]
    }
    assert shapes <= {((5,), (4, 5)), ((1,), (16,))} and shapes
    assert "broadcast-input" not in changed(found, "diopiAddInp")  # it would have to grow


REDUCE = """\
reduce:
  doc: Adds up `input` along `dim`.
  args: {input: Tensor<T>, weight: Tensor<T>?, first: float?, last: float?, dim: "Dim[]"}
  out: Tensor<T> like reduced(input, dim)
  where: {T: float}
  cases:
    - {input: [2, 3, 4], weight: [4], first: 1.5, dim: [0, 2]}
    - {input: [2, 3], weight: [3], first: 1, last: 2, dim: [-1]}
"""


def test_optional_arguments_are_left_out_and_dimensions_counted_from_the_end(program):
    found, diagnostics = program(REDUCE)
    assert not diagnostics.failed
    rows = changed(found, "diopiReduce")
    assert rows["negative"] == {"input": (2, 3, 4), "weight": (4,), "first": 1.5, "dim": (-3, -1)}
    assert "weight" not in rows["absent-weight"] and "first" in rows["absent-weight"]
    assert "first" not in rows["absent-first"] and "weight" in rows["absent-first"]
    assert "absent-last" not in rows  # the first row shows how to do without it


def test_drawn_values_have_no_other_fill(program):
    found, _ = program(ADD.replace("  cases:", '  data: {other: "uniform(1, 2)"}\n  cases:'))
    assert {case.axes.fill for case in found.cases} == {Fill.USUAL}


def test_a_row_says_how_its_values_are_drawn(program):
    row = '    - {input: [9], other: [9], data: {input: "values(nan, 1)"}}\n'
    found, diagnostics = program(ADD.replace("  cases:", '  data: {other: "uniform(1, 2)"}\n  cases:') + row)
    assert not diagnostics.failed
    (output,) = conformance.outputs(found, lambda name, view: "")
    plan = plan_of(json.loads(output.text))
    own = [case for case in plan.cases if case.id.endswith("/4")]
    assert {case.fill for case in own} == {""}  # no other values go in the place of those
    case = next(case for case in own if case.id == "add/f32/4")
    dtypes = {name: "f32" for name in ("input", "other")}
    values = draw_inputs(plan.functions["diopiAdd"], case, dtypes, dtypes)
    assert set(np.nan_to_num(values["input"]).tolist()) == {0.0, 1.0}
    assert 1 <= values["other"].min() <= values["other"].max() <= 2  # as the operator says
    assert not any(c.data for c in plan.cases if not c.id.endswith("/4"))


def test_what_a_row_draws_is_checked(program):
    row = '    - {input: [9], other: [9], data: {inputs: "valuess(1)"}}\n'
    _, diagnostics = program(ADD + row)
    assert [(d.code, d.span.line, d.message, d.hint) for d in diagnostics.ordered()] == [
        ("unknown-arg", 17, "'data' of 'add' draws 'inputs', which it does not have", "did you mean 'input'?"),
        ("unknown-function", 17, "'valuess' is not a way to draw values", "did you mean 'values'?"),
    ]


def test_fills_go_with_types_that_hold_them(program):
    found, _ = program(ADD)
    fills = {(case.axes.fill, case.elements[0][1].kind) for case in found.cases}
    assert {(Fill.SPECIAL, Kind.FLOAT), (Fill.DENORMAL, Kind.FLOAT), (Fill.EXTREMES, Kind.INTEGER)} <= fills
    assert {kind for fill, kind in fills if fill is not Fill.USUAL} == {Kind.FLOAT, Kind.INTEGER}
    assert (Fill.EXTREMES, Kind.FLOAT) not in fills  # the product may overflow where the sum would not


def test_integers_that_are_divided_are_not_the_lowest(program):
    found, diagnostics = program(ADD.replace("input + alpha * other", "input / other"))
    assert not diagnostics.failed
    assert {c.elements[0][1].kind for c in found.cases if c.axes.fill is Fill.EXTREMES} == {Kind.FLOAT}


def test_types_promote_as_in_pytorch(program):
    dtypes = program(ADD)[0].dtypes
    names = ("i8", "u8", "i16", "i64", "f16", "bf16", "f32", "f64", "bool", "c64", "c128")
    for a, b in itertools.product(names, repeat=2):
        left, right = dtypes.named(a), dtypes.named(b)
        wanted = torch.promote_types(getattr(torch, left.torch), getattr(torch, right.torch))
        assert f"torch.{promote(left, right, dtypes).torch}" == str(wanted), (a, b)


def test_backward_functions_and_layouts(program):
    found, diagnostics = program(CONV)
    assert not diagnostics.failed
    assert {case.axes.layout for case in found.cases} == {"", "nhwc"}
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


RANGES = """\
fit:
  doc: Fits `input`.
  args:
    input: Tensor<T>
    other: Tensor<U> | Scalar
    pair: int[2] = 1
    n: int = 0
    narrow: int32 = 0
    single: float32 = 1
    flag: bool = false
    alpha: Scalar = 1
    list: Tensor<T>[count]
  out: Tensor<T> like input
  where: {T: float, U: [i8, u8]}
  cases:
"""


@pytest.mark.parametrize(
    "values, code, message",
    [
        ("pair: [1, 2, 3]", "case-wrong-length", "'pair' is 'int[2]' and has 3 numbers here"),
        ("pair: []", "case-wrong-length", "'pair' is 'int[2]' and has 0 numbers here"),
        ("pair: [1, 9223372036854775808]", "out-of-range", "'pair' is 'int[2]', which cannot be 9223372036854775808"),
        ("input: [-1, 3]", "case-wrong-length", "'input' has a negative size"),
        ("list: [[2], [3, -2]]", "case-wrong-length", "'list' has a negative size"),
        ("n: 0.5", "out-of-range", "'n' is 'int', which cannot be 0.5"),
        ("n: -9223372036854775809", "out-of-range", "'n' is 'int', which cannot be -9223372036854775809"),
        ("narrow: 4294967296", "out-of-range", "'narrow' is 'int32', which cannot be 4294967296"),
        ("single: 1e39", "out-of-range", "'single' is 'float32', which cannot be 1e+39"),
        ("single: true", "out-of-range", "'single' is 'float32', which cannot be true"),
        ("flag: 2", "out-of-range", "'flag' is 'bool', which cannot be 2"),
        ("alpha: 1e400", "out-of-range", "1e400 is out of range for float"),
        ("alpha: 18446744073709551616", "out-of-range", "'alpha' is 'Scalar', which cannot be 18446744073709551616"),
        ("other: 300", "out-of-range", "no dtype of 'other' holds 300"),
    ],
)
def test_values_that_no_argument_holds_are_reported(program, values, code, message):
    row = {"input": "[2]", "other": "[2]", "list": "[[2]]"}
    row |= dict([values.split(": ", 1)])
    text = ", ".join(f"{name}: {value}" for name, value in row.items())
    _, diagnostics = program(RANGES + f"    - {{{text}}}\n")
    assert [(d.code, d.message) for d in diagnostics.ordered() if d.code != "no-case"] == [(code, message)]


@pytest.mark.parametrize("values", ["pair: 3", "pair: [0, -1]", "single: 1e38", "n: 9223372036854775807", "other: 255"])
def test_values_at_the_limits_are_taken(program, values):
    row = {"input": "[2]", "other": "[2]", "list": "[[2]]"} | dict([values.split(": ", 1)])
    text = ", ".join(f"{name}: {value}" for name, value in row.items())
    _, diagnostics = program(RANGES + f"    - {{{text}}}\n")
    assert not diagnostics.failed


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
    case = next(entry for entry in document["cases"] if entry["id"].split("/")[2:-1] == ["strided"])
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

"""Which ATen operators stand behind a function, how each argument is fed, and what no operator serves."""

from collections.abc import Callable

import pytest

from diopigen.aten.catalog import Catalog
from diopigen.model.aten import Calls, DtypeOf, Equals, Feed, FromParam, Given, IntoParam, Raised, SameRank, Wanted
from diopigen.passes.aten.call import call_aten
from tests.unit.aten.conftest import ADD, Bound

Called = Callable[[str], dict[str, Calls]]

ANY = """\
any:
  doc: Says whether an element of `input` is different from zero.
  args: {input: Tensor<T>, dim: "Dim? = null"}
  out: Tensor<bool> like reduced(input, dim)
  where: {T: any}
  aten: {forward: [any.dim, any], ignore: [keepdim]}
"""

SCATTER = """\
scatter:
  doc: Writes `src` where `index` says.
  args: {input: Tensor<T>, dim: Dim, src: Tensor<T>, index: Tensor<i64>, reduce: 'str("", add, multiply) = ""'}
  out: Tensor<T> like input
  where: {T: any}
  aten:
    - {forward: scatter.src, derive: {reduce: '""'}}
    - scatter.reduce
"""

SOFTMAX = """\
softmax:
  doc: Divides exponentials by their sum.
  args: {input: Tensor<T>, dim: Dim}
  out: Tensor<T> like input
  where: {T: float}
  aten: {forward: _softmax, require: {half_to_float: false}}
"""

MATMUL = """\
matmul:
  doc: Multiplies.
  args: {input: Tensor<T>, other: Tensor<T>}
  out: Tensor<T> like matmul(input, other)
  where: {T: float}
"""

SUM = """\
sum:
  doc: Sums along `dim`.
  args: {input: Tensor<T>, dim: "Dim[]"}
  out: Tensor<sum(T)> like reduced(input, dim)
  where: {T: any}
  aten: {forward: sum.dim_IntList, ignore: [keepdim, dtype]}
"""

DROPOUT = """\
dropout:
  doc: Drops elements.
  args: {input: Tensor<T>, p: float, train: bool = true, generator: Generator}
  out: {out: Tensor<T> like input, mask: Tensor<bool> like input}
  where: {T: float}
  aten: native_dropout
"""

LAYER_NORM = """\
layer_norm:
  doc: Normalizes.
  args: {input: Tensor<T>, weight: "Tensor<T>?", bias: "Tensor<T>?", eps: float, normalized_shape: "int[]"}
  out:
    out: Tensor<T> like input
    mean: Tensor<T> like statistics(input, normalized_shape)
    rstd: Tensor<T> like statistics(input, normalized_shape)
  where: {T: float}
  backward:
    grads: [input, weight?, bias?]
    keeps: {input: , weight: , bias: , mean: , rstd: }
    attrs: [normalized_shape]
  aten: {forward: native_layer_norm, backward: native_layer_norm_backward}
"""

ISNAN = """\
isnan:
  doc: Finds NaN.
  args: {input: Tensor<T>}
  out: Tensor<bool> like input
  where: {T: any}
  variants: [out, inplace]
"""


@pytest.fixture
def called(bound: Callable[[str], Bound], catalog: Catalog) -> Called:
    def call(schema: str) -> dict[str, Calls]:
        return {c.symbol: c for c in call_aten(bound(schema).program, catalog).calls}

    return call


def names(calls: Calls) -> list[str]:
    return [call.overload.name for call in calls.calls]


def feeds(calls: Calls, position: int = 0) -> dict[str, Feed]:
    return {arg.name: feed for arg, feed in calls.calls[position].args}


def test_each_form_calls_the_operator_of_its_kind(called: Called) -> None:
    found = called(ADD)
    assert {symbol: names(calls) for symbol, calls in found.items()} == {
        "diopiAdd": ["add.out"],
        "diopiAddInp": ["add_.Tensor"],
        "diopiAddScalar": ["add.Scalar"],
        "diopiAddInpScalar": ["add_.Scalar"],
    }
    assert all(calls.complete for calls in found.values())


def test_inputs_meet_in_the_type_of_the_output(called: Called) -> None:
    found = called(ADD)
    assert feeds(found["diopiAdd"]) == {
        "self": Raised(name="input", out="out"),
        "other": Raised(name="other", out="out"),
        "alpha": FromParam(name="alpha"),
        "out": IntoParam(name="out"),
    }
    assert feeds(found["diopiAddInp"])["self"] == IntoParam(name="input")


def test_an_optional_parameter_chooses_between_operators(called: Called) -> None:
    calls = called(ANY)["diopiAny"]
    assert {c.conditions for c in calls.calls} == {(Given(name="dim", given=False),), (Given(name="dim", given=True),)}
    assert calls.complete


def test_operators_of_the_op_s_own_name_serve_what_the_binding_leaves_out(called: Called) -> None:
    calls = called(ANY.replace("[any.dim, any]", "any.dim"))["diopiAny"]
    assert set(names(calls)) == {"any.dim", "any"} and calls.complete


def test_a_word_that_the_general_operator_lacks_comes_first(called: Called) -> None:
    calls = called(SCATTER)["diopiScatter"]
    assert names(calls) == ["scatter.src", "scatter.reduce"]
    assert [c.conditions for c in calls.calls] == [(Equals(name="reduce", value=""),), ()]


def test_only_an_iterator_writes_the_output_itself(called: Called) -> None:
    calls = called(SOFTMAX)["diopiSoftmax"]
    assert names(calls) == ["_softmax"] and calls.calls[0].results == ((0, "out"),)


def test_the_output_tells_its_type_and_whether_dimensions_stay(called: Called) -> None:
    found = feeds(called(SUM)["diopiSum"])
    assert found["dtype"] == DtypeOf(name="out")
    assert found["keepdim"] == SameRank(out="out", input="input")


def test_an_operator_without_a_binding_is_found_by_the_op_s_own_name(called: Called) -> None:
    calls = called(MATMUL)["diopiMatmul"]
    assert names(calls) == ["matmul"] and calls.span.line == 1


def test_the_plain_operator_is_written_over_where_there_is_none_in_place(called: Called) -> None:
    calls = called(ISNAN)["diopiIsnanInp"]
    assert names(calls) == ["isnan"] and calls.calls[0].results == ((0, "input"),)


def test_the_caller_s_null_handles_make_the_mask(called: Called) -> None:
    found = feeds(called(LAYER_NORM)["diopiLayerNormBackward"])
    assert found["output_mask"] == Wanted(names=("grad_input", "grad_weight", "grad_bias"))


def test_what_would_draw_from_another_generator_is_no_call(called: Called) -> None:
    assert called(DROPOUT) == {}

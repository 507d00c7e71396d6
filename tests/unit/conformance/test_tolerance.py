"""What is close enough: loose enough for sums in any order, tight enough to see a narrow accumulator or a lost eps."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from diopi_conformance.cases.plan import Case, CasePlan, Function, Param, plan_of
from diopi_conformance.expected.live import Live
from diopi_conformance.judgement.closeness import Output, compared
from diopi_conformance.judgement.fault import Closeness, Fault
from diopi_conformance.judgement.tolerance import Terms, Tolerance, coarse, tolerance, ulp
from diopi_conformance.prepare import Prepared, prepare
from diopi_conformance.values.elements import decode, encode, rounded

OPS = """\
total:
  doc: Adds up.
  args: {input: Tensor<T>, dim: "int[]", keepdim: bool = false}
  out: Tensor<T> like reduced(input, dim, keepdim)
  where: {T: float}
  aten:
    forward: sum.dim_IntList
    require: {dtype: null}
    rename: {input: self}
  cases:
    - {input: [6, 2000], dim: [1]}
product:
  doc: Multiplies matrices.
  args: {input: Tensor<T>, mat2: Tensor<T>}
  out: Tensor<T> like matmul(input, mat2)
  where: {T: float}
  aten: mm
  cases:
    - {input: [5, 300], mat2: [300, 4]}
"""


def function(**facts: Any) -> Function:
    usual: dict[str, Any] = {
        "symbol": "diopiExp",
        "op": "exp",
        "word": "exp",
        "topic": "unary",
        "form": "out",
        "params": (Param(name="out", passing="tensor", role="out"), Param(name="input", passing="tensor")),
        "check": "close",
        "tolerance": {},
        "data": {},
        "references": (),
    }
    return Function(**{**usual, **facts})


def case(dtype: str) -> Case:
    return Case(id=f"exp/{dtype}/0", function="diopiExp", dtypes={"out": dtype, "input": dtype}, values={})


def output(actual: Any, exact: Any, dtype: str = "f32", **facts: Any) -> Output:
    return Output(label="out", dtype=dtype, actual=np.asarray(actual), exact=np.asarray(exact), **facts)


CLOSE = tolerance(function(elementwise=True), case("f32"), "f32")


@pytest.mark.parametrize(
    ("dtype", "value", "step"),
    [
        ("f16", 1.0, 2.0**-10),
        ("f16", 0.0, 2.0**-24),
        ("bf16", 1.5, 2.0**-7),
        ("f32", -4.0, 2.0**-21),
        ("f64", 0.75, 2.0**-53),
        ("c64", 1.0, 2.0**-23),
        ("i32", 1.0, 0.0),
    ],
)
def test_the_distance_of_neighbours(dtype: str, value: float, step: float) -> None:
    assert ulp(np.array(value), dtype) == step


@pytest.mark.parametrize(
    ("dtype", "casts", "digits", "unit"),
    [
        ("f64", {}, "f64", 2.0**-53),
        ("f64", {"f64": "f32"}, "f32", 2.0**-24),
        ("f16", {"f16": "f32"}, "f16", 2.0**-24),  # what is computed wider comes back as it is
        ("bf16", {}, "bf16", 2.0**-24),
    ],
)
def test_a_result_is_as_exact_as_the_type_that_is_computed_in(dtype: str, casts: Any, digits: str, unit: float) -> None:
    narrowed = function(params=(Param(name="input", passing="tensor", casts=casts),))
    found = tolerance(narrowed, case(dtype), dtype)
    assert (found.dtype, found.unit, found.exact) == (digits, unit, False)


def test_numbers_that_come_in_as_float_make_double_less_exact() -> None:
    params = (*function().params, Param(name="eps", passing="float"))
    assert tolerance(function(params=params), case("f64"), "f64").unit == 2.0**-24


def test_whole_numbers_and_copies_are_exact_but_their_gradients_are_not() -> None:
    assert tolerance(function(), case("i64"), "i64").exact
    assert tolerance(function(check="exact"), case("f32"), "f32").exact
    assert not tolerance(function(check="exact", form="backward"), case("f32"), "f32").exact


def test_a_pair_of_the_schema_replaces_the_rule() -> None:
    found = tolerance(function(tolerance={"f16": (1e-2, 1e-3)}), case("f16"), "f16")
    assert found.near(np.array([0.0, -2.0])).tolist() == [1e-3, 2.1e-2]
    assert tolerance(function(tolerance={"f16": (1e-2, 1e-3)}), case("f32"), "f32").pair is None


@pytest.mark.parametrize(
    ("actual", "exact", "right"),
    [
        (np.nan, np.nan, True),
        (np.nan, 2.0, False),
        (2.0, np.nan, False),
        (np.inf, np.inf, True),
        (-np.inf, np.inf, False),
        (np.inf, 1e39, True),  # float32 holds no such number
        (1e30, np.inf, False),
        (np.inf, 1e30, False),
        (np.inf, 3.4028235e38, True),  # one step below
        (1 + 2.0**-23, 1.0, True),
        (1 + 2.0**-18, 1.0, False),
        (1e-12, 0.0, False),
    ],
)
def test_elements_are_close_or_not(actual: float, exact: float, right: bool) -> None:
    assert isinstance(compared(output([actual, 0.5], [exact, 0.5]), CLOSE), Closeness) == right


def test_integers_are_equal_or_not() -> None:
    big = np.array([2**62, 5])
    same = compared(output(big.copy(), big, "i64"), Tolerance(dtype="i64", exact=True))
    other = compared(output(big + np.array([1, 0]), big, "i64"), Tolerance(dtype="i64", exact=True))
    assert same == Closeness()
    assert isinstance(other, Fault) and other.index == (0,) and other.ulp is None


@pytest.mark.parametrize(("dtype", "exact"), [("bf16", 1 + 2.0**-8 + 2.0**-40), ("f16", 1 + 2.0**-11 + 2.0**-40)])
def test_halves_of_doubles_may_be_rounded_to_float_before(dtype: str, exact: float) -> None:
    """Just above the middle of two neighbours: at once it goes up, by way of float32 to the even one below."""
    up = rounded(np.array([exact]), dtype)[0]
    tolerance = Tolerance(dtype=dtype, exact=True)
    found = [isinstance(compared(output([value], [exact], dtype), tolerance), Closeness) for value in (1.0, up)]
    assert found == [True, True] and up > 1
    assert isinstance(compared(output([2 * up - 1], [exact], dtype), tolerance), Fault)


def test_terms_are_asked_for_only_where_an_element_needs_them() -> None:
    exact = np.array([1.0, 1e-9])

    def never() -> Terms:
        raise AssertionError("nobody needs this")

    assert isinstance(compared(output(exact + np.array([1e-8, 0]), exact), CLOSE, never), Closeness)
    terms = Terms(magnitude=np.array([1.0, 1.0]), length=1)
    assert isinstance(compared(output(exact + np.array([0, 2e-7]), exact), CLOSE, lambda: terms), Closeness)
    assert isinstance(compared(output(exact + np.array([0, 2e-6]), exact), CLOSE, lambda: terms), Fault)


BEFORE = np.array([7.0, 7.0, 7.0])
EXACT = np.array([1.0, -2.0, 3.0])


@pytest.mark.parametrize(
    ("actual", "message"),
    [
        ([1.0, -2.0, 3.5], "out[2] is 3.5, expected 3, 2.1e+06 ULP off (1 of 3 are wrong)"),
        ([7.0, 7.0, 7.0], "out[0] is 7, expected 1, 2.52e+07 ULP off (3 of 3 are wrong: untouched)"),
        ([0.0, 0.0, 0.0], "out[2] is 0, expected 3, 1.26e+07 ULP off (3 of 3 are wrong: all zeros)"),
        ([1.0, np.nan, 3.0], "out[1] is nan, expected -2 (1 of 3 are wrong: NaN where the result is finite)"),
        ([-1.0, 2.0, -3.0], "out[2] is -3, expected 3, 2.52e+07 ULP off (3 of 3 are wrong: the other sign)"),
        ([4.0, 5.0, 6.0], "out[1] is 5, expected -2, 2.94e+07 ULP off (3 of 3 are wrong: equal to 'other')"),
    ],
)
def test_messages_tell_the_worst_element_and_the_kind_of_fault(actual: list[float], message: str) -> None:
    inputs = {"input": np.array([1.0, 1.0, 1.0]), "other": np.array([4.0, 5.0, 6.0])}
    fault = compared(output(actual, EXACT, before=BEFORE, inputs=inputs), CLOSE)
    assert isinstance(fault, Fault) and fault.message == message


@pytest.fixture
def plan(planned: Any) -> CasePlan:
    return plan_of(json.loads(planned(OPS, aten=True)))


def of(plan: CasePlan, case_id: str, seed: int = 0) -> Prepared:
    chosen = next(c for c in plan.cases if c.id == case_id)
    return prepare(plan, replace(chosen, seed=seed))


def judged(given: Prepared, actual: Any) -> Fault | Closeness:
    """One output of one case."""
    exact = given.expected["out"]
    dtype = given.case.dtypes["out"]
    bound = tolerance(given.function, given.case, dtype)
    return compared(output(actual, exact, dtype), bound, lambda: given.terms()["out"])


def added(values: Any, dtype: str) -> Any:
    """One after the other, each partial sum rounded: the worst way that is still right in float32."""
    total = np.zeros(values.shape[0])
    for column in values.T:
        total = rounded(total + column, dtype)
    return total


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
def test_sums_are_right_in_any_order_in_float32(plan: CasePlan, dtype: str, seed: int) -> None:
    given = of(plan, f"total/{dtype}/0", seed)
    values = given.values["input"]
    for order in (values, values[:, ::-1], np.sort(values, axis=1)):
        assert isinstance(judged(given, rounded(added(order, "f32"), dtype)), Closeness)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("dtype", "narrow"), [("f16", "f16"), ("bf16", "bf16"), ("f32", "f16"), ("f64", "f32")])
def test_a_narrow_accumulator_is_seen(plan: CasePlan, dtype: str, narrow: str, seed: int) -> None:
    given = of(plan, f"total/{dtype}/0", seed)
    assert isinstance(judged(given, rounded(added(given.values["input"], narrow), dtype)), Fault)


def test_the_terms_of_a_product_are_those_that_are_summed(plan: CasePlan) -> None:
    given = of(plan, "product/f32/0")
    terms = given.terms()["out"]
    exact = np.sqrt((given.values["input"] ** 2) @ (given.values["mat2"] ** 2))
    assert terms.length == 300
    assert (
        np.abs(np.log2(terms.magnitude / (np.sqrt(2) * exact))) < 1.5
    ).all()  # each input counts, by its own changes


def test_what_half_holds_is_compared_with_the_exact_value() -> None:
    """Either neighbour is right, what lies one step further is not."""
    exact = np.array([1 + 2.0**-12])
    bound = tolerance(function(elementwise=True), case("f16"), "f16")
    near = [decode(encode(np.array([v]), "f16"), "f16") for v in (1.0, 1 + 2.0**-10, 1 + 2.0**-9)]
    verdicts = [isinstance(compared(output(v, exact, "f16"), bound), Closeness) for v in near]
    assert verdicts == [True, True, False]


def test_the_terms_come_from_where_the_results_come_from(plan: CasePlan) -> None:
    class Told(Live):
        def terms(self, *_: Any) -> dict[str, Terms]:
            return {"out": Terms(magnitude=np.array([42.0]), length=7)}

    chosen = next(c for c in plan.cases if c.id == "total/f32/0")
    assert prepare(plan, chosen, Told()).terms()["out"].length == 7


def test_coarse_magnitudes_have_eight_bits_and_are_never_less():
    exact = np.array([0.0, 1.0, 1.001, 3.3e-30, 7e200, np.pi])
    found = coarse(exact)
    assert np.all(found >= exact) and np.all(found <= exact * (1 + 2.0**-7))
    assert np.array_equal(np.ldexp(np.frexp(found)[0], 8) % 1, np.zeros(6))

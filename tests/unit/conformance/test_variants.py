"""What a run changes in all cases, and which cases it leaves out."""

import pytest
from click.testing import CliRunner

from diopi_conformance.cases.plan import Case, CasePlan, Function, Param
from diopi_conformance.cases.variants import Variant, varied
from diopi_conformance.cli import cli
from diopi_conformance.prepare import prepare


def function(symbol: str, *params: Param, **data: str) -> Function:
    return Function(
        symbol=symbol,
        word=symbol.lower(),
        op="op",
        topic="topic",
        form="out",
        params=params,
        check="close",
        tolerance={},
        data=data,
        references=(),
    )


def tensor(name: str, role: str = "in") -> Param:
    return Param(name=name, passing="tensor", role=role, arg=name)


POOL = function("diopiPool", tensor("out", "out"), tensor("input"))
GATHER = function("diopiGather", tensor("out", "out"), tensor("input"), tensor("index"), index="index(input, dim)")
DTYPES = {"f32": (8, 4, "float"), "i64": (6, 8, "integer"), "i32": (4, 4, "integer")}


def case(name: str, symbol: str, layout: str = "", **dtypes: str) -> Case:
    return Case(id=name, function=symbol, dtypes=dtypes, values={}, layout=layout)


PLAN = CasePlan(
    vendor="v",
    dtypes=DTYPES,
    functions={"diopiPool": POOL, "diopiGather": GATHER},
    cases=(
        case("pool/f32/0", "diopiPool", out="f32", input="f32"),
        case("pool/f32/nhwc/0", "diopiPool", "nhwc", out="f32", input="f32"),
        case("gather/i64-i64/0", "diopiGather", out="i64", input="i64", index="i64"),
    ),
)


def test_the_usual_changes_nothing():
    assert varied(PLAN, PLAN.cases, Variant()) == PLAN.cases


def test_images_with_a_choice_lie_with_channels_innermost():
    found = varied(PLAN, PLAN.cases, Variant(nhwc=True))
    assert [(c.id, c.layout) for c in found] == [
        ("pool/f32/0", "nhwc"),
        ("pool/f32/nhwc/0", "nhwc"),
        ("gather/i64-i64/0", ""),
    ]


def test_only_indices_get_four_bytes():
    _, _, found = varied(PLAN, PLAN.cases, Variant(four_bytes=True))
    assert found.dtypes == {"out": "i64", "input": "i64", "index": "i32"}


def test_a_seed_draws_other_numbers_for_the_same_call(plan):
    first, *_ = plan.cases
    other, *_ = varied(plan, plan.cases, Variant(seed=3))
    one, two = prepare(plan, first), prepare(plan, other)
    assert one.request == two.request and one.blobs != two.blobs
    assert prepare(plan, other).blobs == two.blobs


@pytest.mark.parametrize("name", ["float64", "f64", "double"])
def test_a_type_that_is_skipped_is_counted(plan, plan_path, name):
    found = CliRunner().invoke(cli, ["plan", "--vendor", "v", "--plan", str(plan_path), "--skip-dtype", name])
    out = [c.id for c in plan.cases if "f64" in c.dtypes.values()]
    assert out and found.stdout.split() == [c.id for c in plan.cases if c.id not in out]
    assert f"--skip-dtype {name} leaves out {len(out)} cases" in found.stderr

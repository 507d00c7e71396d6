"""`--sample N`: few cases that reach every function."""

from click.testing import CliRunner

from diopi_conformance.cases.plan import Case, CasePlan, read_plan
from diopi_conformance.cases.selection import sampled
from diopi_conformance.cli import cli


def case(name: str, dtype: str, size: int, **choices: object) -> Case:
    function = name.partition("/")[0]
    return Case(id=name, function=function, dtypes={"input": dtype}, values={"input": [size]}, **choices)


CASES = (
    case("a/f64/0", "f64", 2),
    case("a/f32/0", "f32", 9),
    case("a/f32/model/0", "f32", 1, models=("m",)),
    case("a/f32/strided/1", "f32", 3, view="strided"),
    case("a/f32/zero/1", "f32", 0, change="zero"),
    case("a/f32/1", "f32", 3),
    case("a/bf16/1", "bf16", 3),
    case("b/i64/0", "i64", 4),
    case("b/i64/1", "i64", 3),
)


def ids(count: int) -> list[str]:
    return [each.id for each in sampled(CASES, count)]


def test_one_case_is_the_smallest_usual_one_of_float32_where_there_is_one():
    assert ids(1) == ["a/f32/1", "b/i64/1"]


def test_each_further_case_has_another_element_type_while_there_are_any():
    assert ids(2) == ["a/f64/0", "a/f32/1", "b/i64/0", "b/i64/1"]
    assert ids(3) == ["a/f64/0", "a/f32/1", "a/bf16/1", "b/i64/0", "b/i64/1"]
    assert ids(4) == ["a/f64/0", "a/f32/0", "a/f32/1", "a/bf16/1", "b/i64/0", "b/i64/1"]


def test_all_cases_if_that_many_are_wanted():
    assert sampled(CASES, 100) == CASES


def test_a_sample_reaches_every_function_and_is_the_same_each_time(plan_path):
    def listed(*words: str) -> list[str]:
        command = ["plan", "--vendor", "v", "--plan", str(plan_path), *words]
        return CliRunner().invoke(cli, command).stdout.split()

    plan: CasePlan = read_plan(plan_path)
    functions = {each.id: each.function for each in plan.cases}
    sample = listed("--origin", "row", "--sample", "2")
    assert sample == listed("--origin", "row", "--sample", "2")
    assert {functions[name] for name in sample} == set(functions.values())
    assert len(sample) <= 2 * len(set(functions.values())) < len(functions)


def test_a_sample_has_one_case_of_a_function_or_more():
    found = CliRunner().invoke(cli, ["plan", "--vendor", "v", "--sample", "0"])
    assert found.exit_code == 2 and "--sample" in found.output

"""The calls of models as cases: the data that comes with the suite, and how it is read."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from diopi_conformance.cases.model_cases import DATA, ModelDataError, model_cases, model_names
from diopi_conformance.cases.plan import CasePlan, plan_of
from diopi_conformance.prepare import prepare
from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.project import Project
from diopigen.targets import conformance

ROOT = Path(__file__).resolve().parents[3]

SHARED = {"function": "diopiNeg", "elements": "f32", "dtypes": {"out": "f32", "input": "f32"}}


@pytest.fixture(scope="module")
def plan() -> CasePlan:
    """The whole contract, for a vendor that casts nothing."""
    project, diagnostics = Project(root=ROOT), Diagnostics()
    program = pipeline.run(project, diagnostics, pipeline.Stage.ATEN)
    assert program is not None
    (output,) = conformance.outputs(program, lambda *_: "")
    return plan_of(json.loads(output.text))


@pytest.fixture
def folder(tmp_path):
    """Writes a data folder of one family."""

    def write(*lines, names=("first", "second")):
        (tmp_path / "models.json").write_text(json.dumps(list(names)))
        (tmp_path / "unary.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        return tmp_path

    return write


def test_a_line_is_a_case_that_names_its_models(plan, folder):
    (case,) = model_cases(plan, folder(SHARED, [7, {"input": [2, 3]}, [0, 1]]))
    assert case.id == "neg/f32/model/7"
    assert case.function == "diopiNeg"
    assert case.dtypes == {"out": "f32", "input": "f32"}
    assert case.values == {"input": [2, 3]}
    assert case.models == ("first", "second")
    assert case.elements == "f32"


def test_what_is_not_usual_in_memory_stands_in_the_id(plan, folder):
    shared = {**SHARED, "layout": "nhwc", "view": "strided"}
    (case,) = model_cases(plan, folder(shared, [0, {"input": [1, 2, 3, 4]}, [1]]))
    assert (case.id, case.layout, case.view) == ("neg/f32/nhwc/strided/model/0", "nhwc", "strided")


def test_infinities_are_read_as_numbers(plan, folder):
    (case,) = model_cases(plan, folder(SHARED, [0, {"input": [2], "alpha": {"float": "-inf"}}, [0]]))
    assert case.values["alpha"] == float("-inf")


def test_functions_that_the_plan_lacks_are_left_out(plan, folder):
    small = replace(plan, functions={"diopiNeg": plan.functions["diopiNeg"]})
    exp = {**SHARED, "function": "diopiExp"}
    lines = (exp, [0, {"input": [2]}, [0]], SHARED, [0, {"input": [2]}, [0]])
    assert [case.id for case in model_cases(small, folder(*lines))] == ["neg/f32/model/0"]


@pytest.mark.parametrize(
    "line, reason",
    [
        ([0, {"input": [2]}, [5]], "tuple index out of range"),
        ([0, {"input": [2]}], "not enough values to unpack (expected at least 3, got 2)"),
        ({"elements": "f32"}, "'function'"),
    ],
)
def test_a_line_that_is_no_case_is_named(plan, folder, line, reason):
    data = folder(SHARED, line)
    with pytest.raises(ModelDataError) as error:
        model_cases(plan, data)
    assert str(error.value) == f"{data / 'unary.jsonl'}:2: this is no case ({reason})"


def test_names_are_a_list(plan, folder):
    data = folder(SHARED, names=())
    (data / "models.json").write_text('{"a": 1}')
    with pytest.raises(ModelDataError, match="a list of names is wanted"):
        model_cases(plan, data)


def test_a_folder_without_data_has_no_cases(plan, tmp_path):
    assert model_names(tmp_path) == ()
    assert model_cases(plan, tmp_path) == ()


def test_the_suite_has_the_calls_of_many_models(plan):
    cases = model_cases(plan)
    assert len(cases) >= 12_000
    assert len(model_names()) >= 45
    by_model = Counter(name for case in cases for name in case.models)
    assert set(by_model) == set(model_names())
    assert min(by_model.values()) >= 30


def test_no_two_cases_are_one_call_or_have_one_id(plan):
    cases = model_cases(plan)
    calls = {
        json.dumps([c.function, c.dtypes, c.forward, c.layout, c.view, c.values], sort_keys=True, default=str)
        for c in cases
    }
    assert len(calls) == len(cases)
    assert len({case.id for case in cases}) == len(cases)


def test_every_case_fits_its_function(plan):
    """Tensors have types that the plan knows, and values belong to arguments of the operator."""
    for case in model_cases(plan):
        function = plan.functions[case.function]
        assert set(case.dtypes) == {p.name for p in function.params if p.is_tensor}, case.id
        assert set(case.dtypes.values()) | set(case.forward.values()) <= set(plan.dtypes), case.id
        plain = plan.functions[function.plain] if function.form == "backward" else function
        known = {n for p in (*plain.params, *function.params) for n in (p.arg, p.name)}
        assert set(case.values) <= known, case.id
        assert set(case.forward) <= {p.name for p in plain.params}, case.id


def test_backward_cases_say_their_forward_s_types(plan):
    cases = [c for c in model_cases(plan) if plan.functions[c.function].form == "backward"]
    assert cases
    assert all(case.forward for case in cases)


def test_a_sample_of_the_cases_prepares_with_any_seed(plan):
    cases = model_cases(plan)
    for position in range(0, len(cases), 97):
        case = replace(cases[position], seed=position)
        assert prepare(plan, case).case.id == case.id


def test_every_file_of_the_data_is_a_family(plan):
    topics = {function.topic for function in plan.functions.values()}
    assert {path.stem for path in DATA.glob("*.jsonl")} <= topics


def test_stored_functions_are_all_in_the_contract(plan):
    for path in DATA.glob("*.jsonl"):
        shared = [json.loads(t) for t in path.read_text().splitlines() if t.startswith("{")]
        assert all(plan.functions[line["function"]].topic == path.stem for line in shared)

"""Several tensors behind one handle, and numbers that only the vendor knows: from the schema to a library and back."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from diopi_conformance.cases.plan import plan_of
from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.prepare import prepare
from diopi_conformance.process.worker_pool import Libraries
from diopi_conformance.running.engine import Engine, RunRequest

SCHEMAS = Path(__file__).resolve().parents[3] / "schemas" / "ops"
Library = Callable[[str], Path]
Judge = Callable[[str, str, str], list[Outcome]]


@pytest.fixture
def judged(planned: Callable[..., str], runtime: Path, several: Library) -> Judge:
    """Outcomes of the plain float32 cases of a function of a family, by a library with a fault."""

    def judge(family: str, symbol: str, fault: str) -> list[Outcome]:
        plan = plan_of(json.loads(planned((SCHEMAS / f"{family}.yaml").read_text())))
        cases = tuple(
            case
            for case in plan.cases
            if case.function == symbol and case.elements == "f32" and case.view == "contiguous" and not case.fill
        )
        outcomes: list[Outcome] = []
        libraries = Libraries(runtime=runtime, vendor=several(fault))
        Engine(RunRequest(plan=plan, cases=cases, libraries=libraries, time_limit=30.0), outcomes.append).execute()
        assert len(outcomes) == len(cases) > 1
        return outcomes

    return judge


def test_two_gradients_come_through_one_handle(judged: Judge) -> None:
    outcomes = judged("voxels", "diopiIndiceConvBackwardMmcv", "none")
    assert [(o.verdict, o.message) for o in outcomes] == [(Verdict.PASS, "")] * 3


@pytest.mark.parametrize(("fault", "missing"), [("gives_nothing", "outlist[0]"), ("gives_one", "outlist[1]")])
def test_a_gradient_that_is_not_there_is_told(judged: Judge, fault: str, missing: str) -> None:
    outcomes = judged("voxels", "diopiIndiceConvBackwardMmcv", fault)
    assert [o.message for o in outcomes] == [f"'{missing}' was not allocated"] * 3


def test_every_case_of_a_format_can_be_prepared(planned: Callable[..., str]) -> None:
    plan = plan_of(json.loads(planned((SCHEMAS / "layout.yaml").read_text())))
    assert {case.function for case in plan.cases} == {CAST, TELL}  # a hook gives nothing that can be compared
    for case in plan.cases:
        prepared = prepare(plan, case)
        if case.function == CAST:
            assert prepared.request["args"][-1] == {"pass": "native_format", "value": 0}
            assert np.array_equal(prepared.expected["out"], prepared.values["in"], equal_nan=True)


CAST, TELL = "diopiNativeMemoryFormatCast", "diopiGetNativeMemoryFormat"


@pytest.mark.parametrize("symbol", [CAST, TELL])
def test_a_tensor_is_cast_to_the_format_that_the_vendor_tells(judged: Judge, symbol: str) -> None:
    outcomes = judged("layout", symbol, "none")
    assert [(o.verdict, o.message) for o in outcomes] == [(Verdict.PASS, "")] * 2


def test_a_format_that_is_not_told_is_not_right(judged: Judge) -> None:
    assert [o.message for o in judged("layout", TELL, "tells_nothing")] == ["'format' was not written"] * 2


def test_a_cast_keeps_the_elements(judged: Judge) -> None:
    outcomes = judged("layout", CAST, "casts_to_zeros")
    assert [(o.verdict, o.output) for o in outcomes] == [(Verdict.FAIL, "out")] * 2

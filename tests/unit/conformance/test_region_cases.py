"""The cases of boxes, regions, deformable convolutions and their losses: all can be run, and are worth running."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diopi_conformance.cases.plan import CasePlan, plan_of
from diopi_conformance.judgement.compare import judge, trivial
from diopi_conformance.outcome import Verdict
from diopi_conformance.prepare import Prepared, prepare
from diopi_conformance.values.elements import Array, encode

SCHEMAS = Path(__file__).resolve().parents[3] / "schemas" / "ops"
TOPICS = {
    "boxes": 10,
    "boxes_3d": 8,
    "region_pooling": 15,
    "deformable": 7,
    "loss": 5,
}  # functions that need a row here


@pytest.fixture
def plan(planned: Any, request: pytest.FixtureRequest) -> CasePlan:
    return plan_of(json.loads(planned((SCHEMAS / f"{request.param}.yaml").read_text(), whole=False)))


def wanted(symbol: str) -> bool:
    """Whether PyTorch has no operator for it, so that its reference is written by hand."""
    return symbol.endswith("Mmcv") or symbol == "diopiCTCLossBackward"


@pytest.mark.parametrize(("plan", "count"), TOPICS.items(), indirect=["plan"], ids=list(TOPICS))
def test_every_case_can_be_run_and_asks_for_something(plan: CasePlan, count: int) -> None:
    symbols = [symbol for symbol in plan.functions if wanted(symbol)]
    assert len(symbols) == count
    for symbol in symbols:
        cases = [case for case in plan.cases if case.function == symbol]
        assert len(cases) >= 8, symbol
        told = [tells(prepare(plan, case), plan) for case in cases]
        assert sum(told) >= len(cases) - 5, symbol  # some rows are empty on purpose


def tells(prepared: Prepared, plan: CasePlan) -> bool:
    """Whether the results are finite, not all zero, not all the same, and not the first input again."""
    results = [v for v in prepared.expected.values() if isinstance(v, np.ndarray) and v.size]
    first = next(v for v in prepared.values.values() if isinstance(v, np.ndarray))
    assert all(np.isfinite(v).all() for v in results), prepared.case.id
    different = [v for v in results if v.shape != first.shape or not np.array_equal(v, first)]
    return any(v.any() for v in different) and not trivial(plan, prepared)


@pytest.mark.parametrize("plan", TOPICS, indirect=True)
def test_right_results_pass_and_others_do_not(plan: CasePlan) -> None:
    wrongs: tuple[Callable[[Array], Array], ...] = (np.zeros_like, _off, lambda v: np.roll(v, 1).reshape(v.shape))
    for case in plan.cases:
        if not wanted(case.function) or case.view != "contiguous" or case.fill or case.layout or case.change:
            continue
        call = prepare(plan, case)
        assert verdict(plan, call, lambda values: values) is Verdict.PASS, case.id
        for wrong in wrongs:
            results = [v for v in call.expected.values() if isinstance(v, np.ndarray)]
            if any(not np.allclose(wrong(v), v, rtol=1e-2, atol=3e-2) for v in results):
                assert verdict(plan, call, wrong) is Verdict.FAIL, case.id


def _off(values: Array) -> Array:
    """A tenth too much, or one."""
    return values * 1.1 if np.issubdtype(values.dtype, np.inexact) else values + 1


def verdict(plan: CasePlan, call: Prepared, change: Callable[[Array], Array]) -> Verdict:
    """On a library that gives the expected results, each with the same change."""
    blobs, made = [], []
    for buffer in call.buffers:
        words = buffer.before.copy()
        if buffer.expected is not None:
            words[buffer.layout.positions().reshape(-1)] = encode(change(buffer.expected), buffer.dtype).reshape(-1)
        blobs.append(words.tobytes())
    for slot in call.slots:
        assert slot.expected is not None
        values = np.ascontiguousarray(change(slot.expected))
        strides = [step // values.itemsize for step in values.strides]
        made.append({"dtype": plan.dtypes[slot.dtype][0], "sizes": list(values.shape), "strides": strides, "offset": 0})
        blobs.append(encode(values, slot.dtype).tobytes())
    head = {
        "outcome": "returned",
        "status": 0,
        "synchronized": True,
        "damaged": [],
        "scratch_damaged": False,
        "new": made,
    }
    return judge(plan, call, head, blobs).verdict

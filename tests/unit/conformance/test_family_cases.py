"""Families whose references are all written out: every case can be prepared, means something, and is judged."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diopi_conformance.cases.plan import Case, CasePlan, plan_of
from diopi_conformance.judgement.compare import judge
from diopi_conformance.outcome import Verdict
from diopi_conformance.prepare import Prepared, prepare
from diopi_conformance.references.registry import written_reference
from diopi_conformance.values.elements import encode, is_float

SCHEMAS = Path(__file__).resolve().parents[3] / "schemas" / "ops"
# Which entries, by their beginning.
FAMILIES = {
    "feature_maps": "",
    "fused_layers": "fused_context_attention",
    "point_grouping": "",
    "point_neighbors": "",
    "synchronized_norm": "sync_bn",
    "voxels": "",
}

Reply = tuple[dict[str, Any], list[bytes]]


@pytest.fixture(params=FAMILIES)
def plan(request: pytest.FixtureRequest, planned: Callable[..., str]) -> CasePlan:
    """The plan of one family."""
    text = (SCHEMAS / f"{request.param}.yaml").read_text()
    entries = re.split(r"^(?=[a-z])", text, flags=re.MULTILINE)[1:]
    return plan_of(json.loads(planned("".join(e for e in entries if e.startswith(FAMILIES[request.param])))))


def perfect(plan: CasePlan, prepared: Prepared) -> Reply:
    """What a library answers that does everything right."""
    blobs = []
    for buffer in prepared.buffers:
        words = buffer.before.copy()
        if buffer.expected is not None:
            words[buffer.layout.positions().reshape(-1)] = encode(buffer.expected, buffer.dtype).reshape(-1)
        blobs.append(words.tobytes())
    made = []
    for slot in prepared.slots:
        assert slot.expected is not None
        array = np.empty(slot.expected.shape)
        strides = [step // array.itemsize for step in array.strides]
        number = plan.dtypes[slot.dtype][0]
        made.append({"sizes": list(array.shape), "strides": strides, "dtype": number, "offset": 0})
        blobs.append(encode(slot.expected, slot.dtype).tobytes())
    head = {"outcome": "returned", "status": 0, "synchronized": True, "damaged": [], "scratch_damaged": False}
    return {**head, "new": made}, blobs


def wrong(case: Case, dtype: str) -> float:
    """A number that no result is near; sums of large numbers may be off by more than usual ones are at all."""
    return -60000.0 if case.fill == "large" and is_float(dtype) else 117.0


def spoiled(prepared: Prepared, reply: Reply) -> list[Reply]:
    """The same with the first element of one result changed, for each result; not all others need matter."""
    head, blobs = reply
    found = []
    for i, buffer in enumerate(prepared.buffers):
        if buffer.expected is not None and buffer.expected.size:
            words = np.frombuffer(blobs[i], buffer.before.dtype).copy()
            words[buffer.layout.positions().reshape(-1)[0]] = encode(
                np.asarray(wrong(prepared.case, buffer.dtype)), buffer.dtype
            )
            found.append((head, [*blobs[:i], words.tobytes(), *blobs[i + 1 :]]))
    for i, slot in enumerate(prepared.slots, start=len(prepared.buffers)):
        if slot.expected is None or not slot.expected.size:
            continue
        words = np.frombuffer(blobs[i], encode(np.zeros(0), slot.dtype).dtype).copy()
        words[0] = encode(np.asarray(wrong(prepared.case, slot.dtype)), slot.dtype)
        found.append((head, [*blobs[:i], words.tobytes(), *blobs[i + 1 :]]))
    return found


def results(prepared: Prepared) -> list[tuple[str, Any]]:
    """All that is compared, by name."""
    found = [(b.label, b.expected) for b in prepared.buffers if b.expected is not None]
    return found + [(slot.label, slot.expected) for slot in prepared.slots]


def check_meaning(case: Case, prepared: Prepared) -> None:
    second_derivative = case.values.get("grad") == 2  # of a leaky ReLU: zero is right
    first = next(b.source for b in prepared.buffers if b.source is not None)
    for name, value in results(prepared):
        assert value.size, f"{case.id}: '{name}' has no elements"
        assert np.isfinite(value).all(), f"{case.id}: '{name}' is not finite"
        assert value.any() or second_derivative, f"{case.id}: '{name}' is zero"
        same = first.shape == value.shape and np.array_equal(first, value)
        assert not same, f"{case.id}: '{name}' is the first input"


def test_every_function_has_a_reference_and_cases_that_mean_something(plan: CasePlan) -> None:
    served = {case.function for case in plan.cases}
    for symbol, function in plan.functions.items():
        assert symbol in served
        assert function.form == "backward" or written_reference(function) is not None
    for case in plan.cases:
        if case.view == "contiguous" and not (case.layout or case.fill or case.change):
            check_meaning(case, prepare(plan, case))


def test_a_library_that_is_right_passes_and_one_that_is_wrong_in_one_element_fails(plan: CasePlan) -> None:
    for case in plan.cases[::5]:
        prepared = prepare(plan, case)
        reply = perfect(plan, prepared)
        outcome = judge(plan, prepared, *reply)
        assert outcome.verdict is Verdict.PASS, f"{case.id}: {outcome.message}"
        assert not outcome.trivial, case.id
        for bad in spoiled(prepared, reply):
            assert judge(plan, prepared, *bad).verdict is Verdict.FAIL, case.id

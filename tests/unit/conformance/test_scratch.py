"""Tensors that a function may leave anything in, and lists of generators: what sampling asks of the suite."""

import json
from pathlib import Path
from typing import Any

import pytest

from diopi_conformance.cases.plan import CasePlan, plan_of
from diopi_conformance.judgement.compare import judge
from diopi_conformance.outcome import Verdict
from diopi_conformance.prepare import Prepared, prepare

SCHEMAS = Path(__file__).resolve().parents[3] / "schemas" / "ops"


@pytest.fixture
def prepared(planned: Any) -> tuple[CasePlan, Prepared]:
    plan = plan_of(json.loads(planned((SCHEMAS / "sampling.yaml").read_text())))
    case = next(c for c in plan.cases if c.id == "top_k_sampling/f32-i64/0")
    return plan, prepare(plan, case)


def verdict(plan: CasePlan, prepared: Prepared, changed: str) -> Verdict:
    """Of a library that does everything right, but flips the first byte of one tensor at the end."""
    blobs = []
    for buffer in prepared.buffers:
        words = buffer.before.copy()
        if buffer.expected is not None:
            words[buffer.layout.positions().reshape(-1)] = buffer.expected.reshape(-1).astype(words.dtype)
        blob = bytearray(words.tobytes())
        blob[0] ^= 1 if buffer.label == changed else 0
        blobs.append(bytes(blob))
    head = {"outcome": "returned", "status": 0, "synchronized": True, "damaged": [], "scratch_damaged": False}
    return judge(plan, prepared, head, blobs).verdict


@pytest.mark.parametrize("name", ["workspace", "logits"])
def test_scratch_may_hold_anything_afterwards(prepared: tuple[CasePlan, Prepared], name: str) -> None:
    assert name in [b.label for b in prepared[1].buffers]
    assert verdict(*prepared, changed=name) is Verdict.PASS


@pytest.mark.parametrize("name", ["output_ids", "finished", "runtime_top_k"])
def test_what_is_no_scratch_is_judged(prepared: tuple[CasePlan, Prepared], name: str) -> None:
    assert verdict(*prepared, changed="") is Verdict.PASS
    assert verdict(*prepared, changed=name) is Verdict.FAIL


def test_a_row_says_how_many_generators_there_are(prepared: tuple[CasePlan, Prepared]) -> None:
    seeds = prepared[1].values["generators"]
    assert len(set(seeds)) == 6

"""Results on the simulated chip do not depend on how many threads share the loops of its kernels: not in one byte.

`DIOPI_BUILD` names another build than build/droplet.
"""

import os
from pathlib import Path

import pytest

from diopi_conformance.cases.plan import Case, CasePlan, read_plan
from diopi_conformance.prepare import Prepared, prepare
from diopi_conformance.process.worker_pool import Libraries, Reply, Worker
from diopi_conformance.values.inputs import UnfitCase, UnsoundCase

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = (Path(os.environ.get("DIOPI_BUILD", ROOT / "build" / "droplet")) / "lib").resolve()
PLAN = ROOT / "generated" / "droplet" / "conformance" / "plan.json"

# Each cuts its work in a way of its own: elements, rows, columns, matrices, regions, drawn numbers, sorted lines,
# indices that meet...
FUNCTIONS = (
    "diopiAdd",
    "diopiCastDtype",
    "diopiSum",
    "diopiSoftmax",
    "diopiLayerNormBackward",
    "diopiBatchNorm",
    "diopiMatmul",
    "diopiConvolution2d",
    "diopiConvolution2dBackward",
    "diopiMaxPool2dBackward",
    "diopiEmbeddingBackward",
    "diopiIndexPut",
    "diopiIndexSelectBackward",
    "diopiGatherBackward",
    "diopiScatter",
    "diopiSort",
    "diopiCumsum",
    "diopiNonzero",
    "diopiDropout",
    "diopiFlashAttention",
    "diopiRoiAlignBackwardMmcv",
)

pytestmark = pytest.mark.skipif(
    not (PLAN.exists() and (LIBRARIES / "libdiopi_impl.so").exists()), reason="droplet is not built"
)


@pytest.fixture(scope="module")
def prepared() -> list[Prepared]:
    """The cases of the sample, but for those whose inputs cannot be drawn."""
    plan = read_plan(PLAN)
    return [call for case in plan.cases if case.function in FUNCTIONS for call in _prepared(plan, case)]


def _prepared(plan: CasePlan, case: Case) -> list[Prepared]:
    try:
        return [prepare(plan, case, None)]
    except (UnfitCase, UnsoundCase):
        return []


def replies(prepared: list[Prepared], threads: int, monkeypatch: pytest.MonkeyPatch) -> list[Reply]:
    """Of a chip whose every loop is shared among so many threads."""
    monkeypatch.setenv("DROPLET_THREADS", str(threads))
    monkeypatch.setenv("DROPLET_SHARE_ALL", "1")
    worker = Worker(Libraries(runtime=LIBRARIES / "libdiopirt.so", vendor=LIBRARIES / "libdiopi_impl.so"), 60.0)
    try:
        return worker.ask([(call.request, call.blobs) for call in prepared])
    finally:
        worker.stop()


def test_results_are_the_same_bytes(prepared: list[Prepared], monkeypatch: pytest.MonkeyPatch) -> None:
    assert {call.case.function for call in prepared} == set(FUNCTIONS)
    alone = replies(prepared, 1, monkeypatch)
    assert [head.get("status") for head, _ in alone] == [0] * len(prepared)
    for threads in (2, 3, 8):
        shared = replies(prepared, threads, monkeypatch)
        differing = [
            call.case.id
            for call, (head, blobs), (other, others) in zip(prepared, alone, shared, strict=True)
            if head.get("status") != other.get("status") or blobs != others
        ]
        assert differing == [], f"{threads} threads"

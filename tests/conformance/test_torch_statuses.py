"""What vendor torch answers where ATen throws: a status that the contract knows, and the text behind it.

`DIOPI_TORCH_BUILD` names another build than build/torch.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = Path(os.environ.get("DIOPI_TORCH_BUILD", ROOT / "build" / "torch")) / "lib"
FAILED, NO_IMPLEMENT, DTYPE = 1, 13, 1000

pytestmark = [
    pytest.mark.skipif(
        not (LIBRARIES / "libdiopi_impl.so").exists(), reason="vendor torch is not built: make build IMPL=torch"
    ),
    pytest.mark.deep("matrix", "goldens of its sources, and what tests/unit/aten asks of them"),
]


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    command = [sys.executable, Path(__file__).with_name("torch_statuses.py")]
    command += [LIBRARIES / "libdiopirt.so", LIBRARIES / "libdiopi_impl.so"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return dict(json.loads(run.stdout))


def test_what_is_missing_or_does_not_fit_is_said(found: dict[str, Any]) -> None:
    assert found["null"] == [FAILED, "a tensor is missing: its handle is null"]
    assert found["sizes"] == [FAILED, "an output has the sizes [2, 2], the result has [2, 3]"]


def test_torch_s_own_words_come_through_without_its_stack(found: dict[str, Any]) -> None:
    status, text = found["torch"]
    assert status == FAILED and "shapes cannot be multiplied (2x3 and 2x3)" in text and "Exception raised" not in text


def test_a_type_that_a_kernel_lacks_is_told_from_an_operator_that_is_lacking(found: dict[str, Any]) -> None:
    status, text = found["dtype"]
    assert status == DTYPE and "not implemented for 'Half'" in text
    assert found["refused"] == [
        NO_IMPLEMENT,
        "ATen has no operator for diopiEmbeddingBackward with these arguments",
    ]


def test_the_generator_moves_on_and_repeats_itself_from_its_seed(found: dict[str, Any]) -> None:
    first, second = found["drawn"]
    assert first != second and found["again"] == [first, second]

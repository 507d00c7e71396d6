"""Droplet under ThreadSanitizer: a sample of the conformance cases has no data race, in both modes.

The step `kernels` of `make deep-test KIND=races` runs every case so. A race that is seen ends its case.
"""

import shutil
from pathlib import Path

import pytest

from tests.e2e.conftest import built

# Of each family that cuts its work in a way of its own.
FUNCTIONS = (
    "diopiAdd",
    "diopiSum",
    "diopiSoftmax",
    "diopiLayerNormBackward",
    "diopiMatmul",
    "diopiConvolution2d",
    "diopiMaxPool2dBackward",
    "diopiEmbeddingBackward",
    "diopiIndexPut",
    "diopiSort",
    "diopiTopk",
    "diopiNonzero",
)

pytestmark = [
    pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++"),
    pytest.mark.deep("races", "tests/cpp/test_droplet.py runs the chip's own threads under ThreadSanitizer"),
]


@pytest.mark.parametrize("asynchronous", ["0", "1"])
def test_cases_have_no_race(asynchronous: str, tmp_path: Path) -> None:
    selected = [word for function in FUNCTIONS for word in ("--function", function)]
    environment = {"DROPLET_ASYNC": asynchronous, "DROPLET_THREADS": "4", "DROPLET_SHARE_ALL": "1"}
    report = built("tsan").droplet.report(tmp_path / "report.json", "--origin", "row", *selected, **environment)
    bad = [(o["id"], o["message"]) for o in report["outcomes"] if o["verdict"] != "pass"]
    assert bad == []
    assert report["exit"] == 0 and {o["function"] for o in report["outcomes"]} == set(FUNCTIONS)

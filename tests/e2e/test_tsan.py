"""Droplet under ThreadSanitizer: a sample of the conformance cases has no data race, in both modes.

`make races` builds droplet so and runs every case; without that build this sample is left out. A race that is seen ends
its case: tests/cpp/test_droplet.py runs the chip's own threads under the sanitizer, wherever there is a compiler.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, Sanitized

LIBRARIES = ROOT / "build" / "droplet-tsan" / "lib"

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

pytestmark = pytest.mark.skipif(
    not (LIBRARIES / "libdiopi_impl.so").exists() or shutil.which("g++") is None,
    reason="'make races' makes the build under ThreadSanitizer",
)


@pytest.fixture(scope="module")
def watched() -> Sanitized:
    """The chip, with the sanitizer's own library."""
    found = subprocess.run(["g++", "-print-file-name=libtsan.so"], capture_output=True, text=True, check=True)
    plan = ROOT / "generated" / "droplet" / "conformance" / "plan.json"
    runtime = LIBRARIES / "libdiopirt.so"
    return Sanitized(runtime=runtime, folder=LIBRARIES, plan=plan, preload=found.stdout.strip())


@pytest.mark.parametrize("asynchronous", ["0", "1"])
def test_cases_have_no_race(asynchronous: str, watched: Sanitized, tmp_path: Path) -> None:
    selected = [word for function in FUNCTIONS for word in ("--function", function)]
    environment = {"DROPLET_ASYNC": asynchronous, "DROPLET_THREADS": "4", "DROPLET_SHARE_ALL": "1"}
    report = watched.report(tmp_path / "report.json", "--origin", "row", *selected, **environment)
    bad = [(o["id"], o["message"]) for o in report["outcomes"] if o["verdict"] != "pass"]
    assert bad == []
    assert report["exit"] == 0 and {o["function"] for o in report["outcomes"]} == set(FUNCTIONS)

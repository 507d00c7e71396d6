"""Droplet under AddressSanitizer, UBSan and LeakSanitizer: conformance cases have no finding, and one would be seen.

Under AddressSanitizer the chip marks the memory around each block, so a kernel that leaves its tensor ends the case.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, Built

RUNTIME = ROOT / "vendors" / "droplet" / "runtime"
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")

pytestmark = [
    pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++"),
    pytest.mark.deep(
        "sanitizers",
        "the runner looks at the guard bytes around each tensor of every case, and fresh memory is filled with NaN",
    ),
]


@pytest.mark.parametrize(
    ("asynchronous", "selected", "fewest"),
    [
        ("0", ("--origin", "row"), 20000),
        ("1", ("--origin", "row", "--shard", "1/4"), 5000),
        ("1", ("--origin", "model", "--shard", "1/20"), 600),
    ],
    ids=("rows", "rows-asynchronous", "models-asynchronous"),
)
def test_cases_are_clean(
    asynchronous: str, selected: tuple[str, ...], fewest: int, sanitized: Built, tmp_path: Path
) -> None:
    report = sanitized.droplet.report(tmp_path / "report.json", *selected, DROPLET_ASYNC=asynchronous)
    bad = [(o["id"], o["message"]) for o in report["outcomes"] if o["verdict"] != "pass"]
    assert bad == []
    assert report["leaks"] == []
    assert report["exit"] == 0 and report["counts"]["pass"] > fewest


@pytest.mark.parametrize("outside", [False, True])
def test_a_kernel_that_leaves_its_memory_is_caught(outside: bool, sanitized: Built, tmp_path: Path) -> None:
    program, libraries = tmp_path / "outside", sanitized.folder / "lib"
    command = ["g++", "-std=c++17", *SANITIZE, f"-I{RUNTIME}", "-o", str(program)]
    command += [
        str(Path(__file__).with_name("outside.cpp")),
        f"-L{libraries}",
        f"-Wl,-rpath,{libraries}",
        "-ldroplet_rt",
    ]
    subprocess.run(command, check=True)
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    arguments = ["outside"] if outside else []
    done = subprocess.run([str(program), *arguments], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode != 0) == outside
    assert ("AddressSanitizer: use-after-poison" in done.stderr) == outside

"""Droplet under AddressSanitizer and UBSan: every conformance case runs without a finding, and one would be seen.

Under AddressSanitizer the chip marks the memory around each block, so a kernel that leaves its tensor ends the case.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "droplet-asan"
RUNTIME = ROOT / "vendors" / "droplet" / "runtime"
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")

pytestmark = [
    pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++"),
    pytest.mark.xdist_group("asan"),
]


@pytest.fixture(scope="module")
def libraries() -> Path:
    """The folder of the sanitized libraries; only what changed since the last run is compiled."""
    command = [sys.executable, str(ROOT / "tools" / "build.py"), "--vendor", "droplet", "--build", str(BUILD)]
    command += ["--no-torch", "--sanitize"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return BUILD / "lib"


@pytest.fixture(scope="module")
def sanitizer() -> str:
    """The sanitizer's own library, which must come first in a process that loads a sanitized one later.

    The C++ library comes with it: without that the sanitizer finds nothing that throws, and an exception ends all.
    """
    paths = []
    for name in ("libasan.so", "libstdc++.so"):
        found = subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
        paths.append(found.stdout.strip())
        if not Path(paths[-1]).is_file():
            pytest.skip(f"the compiler has no {name}")
    return ":".join(paths)


@pytest.mark.parametrize("asynchronous", ["0", "1"])
def test_every_case_is_clean(asynchronous: str, libraries: Path, sanitizer: str, tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    command = [sys.executable, "-m", "diopi_conformance.cli", "run", "--vendor", "droplet"]
    command += ["--libraries", str(libraries), "--preload", sanitizer, "--out", str(out)]
    command += ["--jobs", str(os.cpu_count() or 1), "--timeout", "300"]
    # Fresh memory is filled with NaN: what a kernel leaves unwritten shows.
    environment = {**os.environ, "DROPLET_ASYNC": asynchronous, "DROPLET_POISON": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert out.is_file(), done.stderr
    report = json.loads(out.read_text(encoding="utf-8"))
    bad = [(o["id"], o["message"]) for o in report["outcomes"] if o["verdict"] not in ("pass", "not-implemented")]
    assert bad == []
    assert done.returncode == 0 and report["counts"]["pass"] > 7000


@pytest.mark.parametrize("outside", [False, True])
def test_a_kernel_that_leaves_its_memory_is_caught(outside: bool, libraries: Path, tmp_path: Path) -> None:
    program = tmp_path / "outside"
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

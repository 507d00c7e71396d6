"""Droplet under the sanitizers: one build serves every test that runs on it."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "droplet-asan"
LOSSY = ROOT / "vendors" / "droplet" / "profiles" / "lossy.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sanitized:
    """The libraries of one chip, with what runs their conformance cases under the sanitizers."""

    runtime: Path  # libdiopirt.so
    folder: Path  # of libdiopi_impl.so
    plan: Path
    preload: str  # the sanitizer's own library, which must come first in a process that loads a sanitized one later

    def report(self, out: Path, *selected: str, **environment: str) -> dict[str, Any]:
        """The report of a run of the selected cases, of all unless some are selected; its exit code is in "exit"."""
        command = [sys.executable, "-m", "diopi_conformance.cli", "run", "--vendor", "droplet", "--out", str(out)]
        command += ["--libraries", str(self.folder), "--runtime", str(self.runtime), "--plan", str(self.plan)]
        command += ["--preload", self.preload, "--jobs", str(os.cpu_count() or 1), "--timeout", "300", *selected]
        # Fresh memory is filled with NaN: what a kernel leaves unwritten shows.
        variables = {**os.environ, "DROPLET_POISON": "1", **environment}
        done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
        assert out.is_file(), done.stderr
        found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        return {**found, "exit": done.returncode}


@pytest.fixture(scope="session")
def preload() -> str:
    """The sanitizer's own library, and the C++ library, without which it finds nothing that throws and ends."""
    paths = []
    for name in ("libasan.so", "libstdc++.so"):
        found = subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
        paths.append(found.stdout.strip())
        if not Path(paths[-1]).is_file():
            pytest.skip(f"the compiler has no {name}")
    return ":".join(paths)


@pytest.fixture(scope="session")
def libraries() -> Path:
    """The folder of the sanitized libraries; only what changed since the last run is compiled.

    The variant that lacks more shares every object but its adaptor, so it costs a tenth of a build.
    """
    command = [sys.executable, str(ROOT / "tools" / "build.py"), "--vendor", "droplet", "--build", str(BUILD)]
    command += ["--no-torch", "--sanitize", "--profile", str(LOSSY)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return BUILD / "lib"


@pytest.fixture(scope="session")
def droplet(libraries: Path, preload: str) -> Sanitized:
    """The chip as it is."""
    plan = ROOT / "generated" / "droplet" / "conformance" / "plan.json"
    return Sanitized(runtime=libraries / "libdiopirt.so", folder=libraries, plan=plan, preload=preload)


@pytest.fixture(scope="session")
def lossy(libraries: Path, preload: str) -> Sanitized:
    """Its variant without 64-bit numbers."""
    plan = BUILD / "profiles" / "lossy" / "droplet" / "conformance" / "plan.json"
    return Sanitized(runtime=libraries / "libdiopirt.so", folder=libraries / "lossy", plan=plan, preload=preload)

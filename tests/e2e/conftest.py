"""Droplet and its variant, with and without sanitizers: one build serves every test that runs on it."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.memory_faults import build_planted

ROOT = Path(__file__).resolve().parents[2]
LOSSY = ROOT / "vendors" / "droplet" / "profiles" / "lossy.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """The libraries of one chip, with what runs their conformance cases."""

    runtime: Path  # libdiopirt.so
    folder: Path  # of libdiopi_impl.so
    plan: Path
    preload: str  # the sanitizer's own library, which must come first in a process that loads a sanitized one later

    def report(self, out: Path, *selected: str, **environment: str) -> dict[str, Any]:
        """The report of a run of the selected cases, of all unless some are selected; its exit code is in "exit"."""
        command = [sys.executable, "-m", "diopi_conformance.cli", "run", "--vendor", "droplet", "--out", str(out)]
        command += ["--libraries", str(self.folder), "--runtime", str(self.runtime), "--plan", str(self.plan)]
        command += ["--jobs", str(os.cpu_count() or 1), "--timeout", "300", *selected]
        command += ["--preload", self.preload] if self.preload else []
        # Fresh memory is filled with NaN: what a kernel leaves unwritten shows.
        variables = {**os.environ, "DROPLET_POISON": "1", **environment}
        done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
        assert out.is_file(), done.stderr
        found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        return {**found, "exit": done.returncode}


@dataclass(frozen=True, slots=True)
class Built:
    """A build of droplet with its variant."""

    folder: Path
    preload: str

    @property
    def droplet(self) -> Chip:
        """The chip as it is."""
        libraries = self.folder / "lib"
        plan = ROOT / "generated" / "droplet" / "conformance" / "plan.json"
        return Chip(runtime=libraries / "libdiopirt.so", folder=libraries, plan=plan, preload=self.preload)

    def variant(self, name: str) -> Chip:
        """One of its profiles, e.g. "lossy", without 64-bit numbers."""
        libraries = self.folder / "lib"
        if not (libraries / name).is_dir():
            pytest.skip(f"the profile {name} of droplet is not built")
        plan = self.folder / "profiles" / name / "droplet" / "conformance" / "plan.json"
        return Chip(runtime=libraries / "libdiopirt.so", folder=libraries / name, plan=plan, preload=self.preload)


@pytest.fixture(scope="session")
def planted(sanitized: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the sanitized chip's library whose kernels have the fault that the environment chooses."""
    return build_planted(sanitized.folder, tmp_path_factory.mktemp("memory-faults"))


def _library(name: str) -> str:
    """The path of one of the compiler's libraries."""
    found = subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout
    assert Path(found.strip()).is_file(), f"the compiler has no {name}"
    return found.strip()


def built(sanitize: str | None, backend: bool = False) -> Built:
    """Droplet and its variant that lacks more, with the PyTorch backend if asked for; what changed is compiled.

    The variant shares every object but its adaptor, so it costs a tenth of a build.
    """
    if sanitize is None:  # what `make test` builds beforehand
        return Built(ROOT / "build" / "droplet", "")
    folder = ROOT / "build" / f"droplet-{sanitize}"
    command = [sys.executable, str(ROOT / "tools" / "build.py"), "--vendor", "droplet", "--build", str(folder)]
    command += ["--sanitize", {"asan": "address", "tsan": "thread"}[sanitize], "--profile", str(LOSSY)]
    command += [] if backend else ["--no-torch"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    # without the C++ library AddressSanitizer finds nothing that throws and ends
    names = ("libasan.so", "libstdc++.so") if sanitize == "asan" else ("libtsan.so",)
    return Built(folder, ":".join(map(_library, names)))


@pytest.fixture(scope="session")
def sanitized() -> Built:
    """Under AddressSanitizer and UndefinedBehaviorSanitizer."""
    return built("asan")


@pytest.fixture(scope="session")
def tracked_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout's tracked files, in which packages may be built."""
    folder = tmp_path_factory.mktemp("tracked") / "checkout"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, tracked.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    return folder

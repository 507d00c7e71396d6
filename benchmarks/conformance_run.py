"""What a conformance case costs, beside the classic way: files of inputs and outputs, a generated test for each case.

The peer reads what to give and what to expect from an .npz for each case, by one generated pytest function each, and
calls through the same ctypes code. Writing its files is not counted; computing our references is. One process each.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from figures import Report
from setting import ROOT, Setting

from diopi_conformance.cases.plan import Case, CasePlan, read_plan
from diopi_conformance.expected.expectations import SCRATCH
from diopi_conformance.prepare import prepare
from diopi_conformance.values.inputs import UnfitCase, UnsoundCase

ABOUT = "a conformance run over rows of the schemas; the peer reads stored files, one generated pytest function a case"
ROUNDS = 3
PEERS = 1_000  # of our cases, since one of the peer takes longer

TEST = """
def test_{number}():
    judge({number})
"""


def measure(setting: Setting) -> Report:
    """Times both as processes, in turns."""
    report = Report("conformance_run", ABOUT)
    path = ROOT / "generated" / setting.vendor / "conformance" / "plan.json"
    plan = read_plan(path)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        count = _written(plan, plan.cases[:: max(1, len(plan.cases) // PEERS)], place)
        _generated(place, count)
        ours = _ours(setting, path, place, len(plan.cases))
        peer = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "-p", "no:cacheprovider", "test_cases.py"]
        found: dict[str, list[float]] = {"ours": [], "peer": [], "ours, CPU": [], "peer, CPU": []}
        for _ in range(ROUNDS):
            for name, command, divisor in (("ours", ours, len(plan.cases)), ("peer", peer, count)):
                wall, cpu = _timed(command, place if name == "peer" else ROOT, setting)
                found[name].append(1000 * wall / divisor)
                found[f"{name}, CPU"].append(1000 * cpu / divisor)
    figures = {name: report.add(f"a case, {name}", "ms", values) for name, values in found.items()}
    report.compare("peer over ours, wall", figures["peer"].median / figures["ours"].median, target="20 or more")
    report.compare("peer over ours, CPU", figures["peer, CPU"].median / figures["ours, CPU"].median)
    return report


def _ours(setting: Setting, plan: Path, place: Path, count: int) -> list[str]:
    words = ["run", "--vendor", setting.vendor, "--plan", plan, "--libraries", setting.libraries, "--origin", "row"]
    words += ["--jobs", 1, "--quiet", "--format", "summary", "--out", place / "report.json"]
    return [sys.executable, "-m", "diopi_conformance", *map(str, words)]


def _written(plan: CasePlan, cases: tuple[Case, ...], folder: Path) -> int:
    """Writes the files of the peer; how many there are."""
    count = 0
    for case in cases:
        try:
            found = prepare(plan, case)
        except (UnfitCase, UnsoundCase):
            continue
        arrays = {f"before{i}": np.frombuffer(blob, np.uint8) for i, blob in enumerate(found.blobs)}
        for index, buffer in enumerate(found.buffers):
            if buffer.expected is not None and buffer.expected is not SCRATCH:
                arrays[f"expected{index}"] = buffer.expected
                arrays[f"positions{index}"] = buffer.layout.positions()
        tensors = [{"dtype": buffer.dtype, "label": buffer.label} for buffer in found.buffers]
        head = np.frombuffer(json.dumps({"request": found.request, "tensors": tensors}).encode(), np.uint8)
        np.savez(folder / f"{count}.npz", allow_pickle=False, head=head, **arrays)
        count += 1
    return count


def _generated(folder: Path, count: int) -> None:
    """The peer's tests: its frame, and a function for each case."""
    frame = (Path(__file__).parent / "programs" / "classic_frame.py").read_text(encoding="utf-8")
    text = frame + "".join(TEST.format(number=number) for number in range(count))
    (folder / "test_cases.py").write_text(text, encoding="utf-8")


def _timed(command: list[str], folder: Path, setting: Setting) -> tuple[float, float]:
    """Wall and CPU seconds of a process and its children; a case that fails costs as much as one that passes."""
    before, begin = os.times(), time.perf_counter()
    environment = {**os.environ, "CLASSIC_LIBRARIES": str(setting.libraries)}
    code = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False).returncode
    assert code in (0, 1), f"{command} ended with {code}"
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - begin, cpu

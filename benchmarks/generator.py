"""What `diopigen all` takes, cold and with nothing changed, beside torchgen reading PyTorch's own operators."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figures import Report
from setting import ROOT, Setting

ABOUT = "`diopigen all` as a process; the peer is torchgen parsing native_functions.yaml; wall time and CPU time"
ROUNDS = 10
BARE_ROUNDS = 3  # of the slowest variant

TORCHGEN = """
import pathlib, torchgen, torchgen.gen
folder = pathlib.Path(torchgen.__file__).parent / "packaged" / "ATen" / "native"
torchgen.gen.parse_native_yaml(str(folder / "native_functions.yaml"), str(folder / "tags.yaml"))
"""


def measure(setting: Setting) -> Report:
    """Times processes in turns; each run writes into folders of its own."""
    report = Report("generator", ABOUT)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        kept = place / "kept"
        _run(_all(setting, kept), place)
        variants = {
            "nothing changed": lambda number: _run(_all(setting, kept), place),
            "cold: a fresh folder, torch's schemas cached": lambda number: _run(
                _all(setting, place / f"{number}"), place
            ),
            "torchgen alone (peer)": lambda number: _run([sys.executable, "-c", TORCHGEN], place),
            "cold, and no cache of torch's schemas": lambda number: _run(
                _all(setting, place / f"bare{number}"), place / f"none{number}"
            ),
        }
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in variants}
        for number in range(ROUNDS):
            for name, run in variants.items():
                if number < BARE_ROUNDS or not name.endswith("no cache of torch's schemas"):
                    found[name].append(run(number))
    for name, times in found.items():
        report.add(f"{name}, wall", "s", [wall for wall, _ in times])
        report.add(f"{name}, CPU", "s", [cpu for _, cpu in times])
    _compare(report)
    return report


def _compare(report: Report) -> None:
    """One process, one thread: on a machine with nothing else to do the wall time is the CPU time."""
    median = {each.name: each.median for each in report.figures}
    targets = {"nothing changed": "0.5 s or less", "cold: a fresh folder, torch's schemas cached": "2.0 s or less"}
    for name, target in targets.items():
        for clock in ("wall", "CPU"):
            report.compare(f"diopigen all, {name}, {clock}", median[f"{name}, {clock}"], "s", target)
        report.compare(
            f"diopigen all, {name}: over torchgen, CPU", median[f"{name}, CPU"] / median["torchgen alone (peer), CPU"]
        )


def _all(setting: Setting, out: Path) -> list[str]:
    return [sys.executable, "-m", "diopigen", "all", "--vendor", setting.vendor, "--out", str(out)]


def _run(command: list[str], cache: Path) -> tuple[float, float]:
    """Wall seconds and CPU seconds of a process; the generator's cache of torch's schemas lies in `cache`."""
    environment = {**os.environ, "DIOPIGEN_CACHE_DIR": str(cache), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    before, start = os.times(), time.perf_counter()
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - start, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, used

"""What `diopigen all` takes, cold and with nothing changed, beside torchgen: its reading, and its full generation."""

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import torchgen
from figures import Report
from foreign_vendor import foreign_project
from many_entries import EDITS, edit, many_entries
from setting import ROOT, Setting

ABOUT = (
    "`diopigen all` as a process, also after edits, and `diopigen lint`; the peers are torchgen parsing "
    "native_functions.yaml, and torchgen writing all of ATen's sources; wall time, CPU time and memory"
)
ROUNDS = 10
FEW_ROUNDS = 3  # of the slowest variants
BARE = "cold, and no cache of torch's schemas"
FULL = "torchgen's full generation (peer)"
LINT = {
    "lint of a vendor with 140 sources and no SDK, no cache": True,
    "the same without a header that they share": False,
}
SIZES = {1: "", 8: ", eight times the entries"}  # how often the entries of schemas/ops are there

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
            BARE: lambda number: _run(_all(setting, place / f"bare{number}"), place / f"none{number}"),
            FULL: lambda number: _run(_torchgen(place / f"torchgen{number}"), place, folder=place),
        }
        found: dict[str, list[Used]] = {name: [] for name in variants}
        for number in range(ROUNDS):
            for name, run in variants.items():
                if number < FEW_ROUNDS or name not in (BARE, FULL):
                    found[name].append(run(number))
        for name, common in LINT.items():
            project = foreign_project(place / f"common{common}", common)
            lint = [sys.executable, "-m", "diopigen", "--project", str(project), "lint", "--vendor", "foreign"]
            found[name] = [_run(lint, place / f"lint{common}{number}") for number in range(FEW_ROUNDS)]
        for times, words in SIZES.items():
            found |= {
                f"edit of one entry's {what}{words}": runs for what, runs in _edits(setting, place, times).items()
            }
    for name, runs in found.items():
        report.add(f"{name}, wall", "s", [used.wall for used in runs])
        report.add(f"{name}, CPU", "s", [used.cpu for used in runs])
        report.add(f"{name}, memory", "MB", [used.memory for used in runs])
    _compare(report)
    return report


def _edits(setting: Setting, place: Path, times: int) -> dict[str, list["Used"]]:
    """Runs after edits of one entry, where the results of a run before each are kept."""
    project, kept = many_entries(place / f"entries{times}", times), place / f"kept{times}"
    command = [sys.executable, "-m", "diopigen", "--project", str(project), "all", "--vendor", setting.vendor]
    command += ["--out", str(place / f"of-entries{times}")]
    _run(command, kept)
    found: dict[str, list[Used]] = {what: [] for what in EDITS}
    for number in range(FEW_ROUNDS):
        for what, runs in found.items():
            edit(project, what, number)
            runs.append(_run(command, kept))
    return found


def _compare(report: Report) -> None:
    """One process, one thread: on a machine with nothing else to do the wall time is the CPU time."""
    median = {each.name: each.median for each in report.figures}
    targets = {"nothing changed": "0.15 s or less", "cold: a fresh folder, torch's schemas cached": "1.5 s or less"}
    for name, target in targets.items():
        for clock in ("wall", "CPU"):
            report.compare(f"diopigen all, {name}, {clock}", median[f"{name}, {clock}"], "s", target)
        for peer in ("torchgen alone (peer)", FULL):
            report.compare(f"diopigen all, {name}: over {peer}, CPU", median[f"{name}, CPU"] / median[f"{peer}, CPU"])
    for times, words in SIZES.items():
        for what in EDITS:
            name = f"edit of one entry's {what}{words}"
            report.compare(name, median[f"{name}, CPU"], "s", f"{0.5 if times == 1 else 1} s or less")
    for name in LINT:
        report.compare(name, median[f"{name}, wall"], "s", "10 s or less")
    report.compare("diopigen all, cold, memory", median[f"{BARE}, memory"], "MB", "200 MB or less")


def _all(setting: Setting, out: Path) -> list[str]:
    return [sys.executable, "-m", "diopigen", "all", "--vendor", setting.vendor, "--out", str(out)]


def _torchgen(out: Path) -> list[str]:
    """torchgen's own command, which writes the sources of ATen."""
    for folder in ("ops", "core"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    source = Path(torchgen.__file__).parent / "packaged" / "ATen"
    return [sys.executable, "-m", "torchgen.gen", "--source-path", str(source), "--install_dir", str(out)]


@dataclass(frozen=True)
class Used:
    """What one process took."""

    wall: float  # seconds
    cpu: float  # seconds
    memory: float  # MB at the most


def _run(command: list[str], cache: Path, folder: Path = ROOT) -> Used:
    """Runs a process in `folder` to its end; what the generator keeps lies in `cache`.

    Python keeps the bytecode of modules, as it does unless it is told otherwise.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"DIOPIGEN_CACHE_DIR": str(cache), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    start = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Used(wall=wall, cpu=usage.ru_utime + usage.ru_stime, memory=usage.ru_maxrss / 1024)

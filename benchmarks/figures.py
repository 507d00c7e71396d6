"""What a benchmark reports: figures with their spread, comparisons with a peer, and the facts of the build."""

import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """One quantity over several rounds, in `unit`."""

    name: str  # e.g. "at::add on dipu"
    unit: str  # e.g. "ns"
    median: float
    low: float  # the lower quartile
    high: float  # the upper quartile
    least: float
    rounds: int


@dataclass(frozen=True)
class Comparison:
    """A figure beside its peer of the same run; `target` says what was asked for, "" where nothing was."""

    name: str  # e.g. "at::add, dipu over CPU"
    value: float
    unit: str  # e.g. "x"
    target: str = ""  # e.g. "0.4 or less"


@dataclass
class Report:
    """What one benchmark found."""

    benchmark: str  # e.g. "wrapper_overhead"
    about: str  # one sentence: what is measured, and the peer
    figures: list[Figure] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)

    def add(self, name: str, unit: str, values: Sequence[float]) -> Figure:
        """Adds the figure of `values`, one for each round, and returns it."""
        found = figure(name, unit, values)
        self.figures.append(found)
        return found

    def compare(self, name: str, value: float, unit: str = "x", target: str = "") -> None:
        """Adds a comparison."""
        self.comparisons.append(Comparison(name, _rounded(value), unit, target))


def figure(name: str, unit: str, values: Sequence[float]) -> Figure:
    """The figure of `values`, of which there must be one at least."""
    ordered = sorted(values)
    low, _, high = statistics.quantiles(ordered, n=4) if len(ordered) > 1 else (ordered[0],) * 3
    numbers = (statistics.median(ordered), max(low, ordered[0]), min(high, ordered[-1]), ordered[0])
    return Figure(name, unit, *(_rounded(number) for number in numbers), rounds=len(ordered))


# Where these name kernels of other processors than the machine's, droplet's products are slower.
_KERNEL_CHOICES = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def facts(compiler: str, vendor: str = "droplet") -> dict[str, str]:
    """What the figures depend on, and the day, without anything that names a machine."""
    words = subprocess.run([compiler, "-dumpfullversion"], capture_output=True, text=True, check=False).stdout
    named = {name: os.environ[name] for name in _KERNEL_CHOICES if name in os.environ}
    if vendor == "cuda":
        command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        named |= {"device": f"{len(names)} x {names[0]}"}
    return {
        "measured": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "torch": version("torch"),
        "compiler": f"g++ {words.strip()}",
        "architecture": platform.machine(),
        "processor": processor(),
        **named,
    }


def processor() -> str:
    """The processor's name, e.g. "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", or its architecture."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


def save(report: Report, known: dict[str, str], folder: Path) -> None:
    """Writes results/<benchmark>.json."""
    folder.mkdir(exist_ok=True)
    content = {"benchmark": report.benchmark, "about": report.about, "facts": known}
    content |= {"comparisons": [asdict(each) for each in report.comparisons]}
    content |= {"figures": [asdict(each) for each in report.figures]}
    (folder / f"{report.benchmark}.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _rounded(value: float) -> float:
    """Four significant digits: more is noise."""
    return float(f"{value:.4g}")

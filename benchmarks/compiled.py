"""What a compiled training step takes, beside dipu eager and torch's own: on the CPU, or with vendor cuda on a GPU."""

import json
import sys
import time
from collections.abc import Iterable
from tempfile import TemporaryDirectory

from figures import Report
from setting import HERE, Setting

ABOUT = "one training step compiled for dipu, beside eager and inductor (peers), on one and on two threads"
ABOUT_CUDA = (
    "bf16 training steps and decoding on a GPU, compiled for dipu, beside eager, inductor and its graphs (peers)"
)
COLUMNS = (  # ours last
    ("cuda", "eager"),
    ("cuda", "inductor"),
    ("cuda", "graphs"),
    ("dipu", "eager"),
    ("dipu", "diopi"),
    ("dipu", "recorded"),
)
OURS = ("dipu diopi", "dipu recorded")
FIRSTS = (  # whoever comes second in COLUMNS finds what the first one kept
    ("nothing kept, over inductor's", "dipu diopi", "cuda inductor", "0.8"),
    ("caches kept, over inductor's graphs", "dipu recorded", "cuda graphs", "0.5"),
)


def measure(setting: Setting) -> Report:
    """Runs compiled_times.py once for each number of threads, or compiled_gpu_times.py once for each column."""
    return _on_a_gpu(setting) if setting.vendor == "cuda" else _on_the_host(setting)


def _on_the_host(setting: Setting) -> Report:
    report = Report("compiled", ABOUT)
    for threads in ("1", "2"):
        lines = setting.python(str(HERE / "compiled_times.py"), DROPLET_THREADS=threads, OPENBLAS_NUM_THREADS=threads)
        for task in map(json.loads, lines.splitlines()):
            title = f"{task['name']}, {threads} thread{'s' if threads != '1' else ''}"
            rows = {
                mode: report.add(f"{title}, {mode}", "ms", task[mode])
                for mode in task
                if mode not in ("name", "threads")
            }
            compiled = rows.pop("dipu compiled")
            for mode, row in rows.items():
                target = f"{0.85 if mode == 'CPU inductor' else 1.0} or less"
                report.compare(f"{title}: compiled over {mode}", compiled.median / row.median, target=target)
    return report


def _on_a_gpu(setting: Setting) -> Report:
    report = Report("compiled_cuda", ABOUT_CUDA)
    with TemporaryDirectory() as kept:
        add_columns(report, ((column, lines_of(setting, kept, *column)) for column in COLUMNS), target="0.95")
    return report


def add_columns(report: Report, columns: Iterable[tuple[tuple[str, str], list[str]]], target: str) -> None:
    """Adds what compiled_gpu_times.py printed for each device and mode, and what is ours over the peers'."""
    medians: dict[str, dict[str, float]] = {}
    firsts: dict[str, dict[str, float]] = {}
    for (device, mode), lines in columns:
        column = f"{device} {mode}"
        for found in map(json.loads, lines):
            if "recordings" in found:
                for name, count in found["recordings"].items():
                    report.compare(f"{column}: runs that were {name}", count, "")
                continue
            name = found["name"] if found["dtype"] != "f32" else f"{found['name']}, all digits"
            title = f"{name}, {column}"
            if "error" in found:
                report.compare(f"{title}: {found['error']}", 0, "")
                continue
            kinds = ", ".join(f"{kind} {spent:g}" for kind, spent in found["kinds_ms"].items())
            row = report.add(f"{title} ({found['launches']} launches; {kinds})", "ms", found["ms"])
            report.add(f"{title}, the host's share", "ms", found["host_ms"])
            medians.setdefault(name, {})[column] = row.median
            firsts.setdefault(name, {})[column] = found["first_s"]
    for name, found in medians.items():
        ours = [found[column] for column in OURS if column in found]
        peers = [found[column] for column in found if column.startswith("cuda")]
        if ours and peers:
            ratio = min(ours) / min(peers)
            report.compare(f"{name}: ours over the best of the peers", ratio, target=f"{target} or less")
        if {"dipu eager", "cuda eager"} <= found.keys():
            ratio = found["dipu eager"] / found["cuda eager"]
            report.compare(f"{name}: dipu eager over CUDA eager", ratio, target="1.0 or less")
    for name, found in firsts.items():
        if all(column in found for _, *pair, _ in FIRSTS for column in pair):
            for what, ours, peer, most in FIRSTS:
                report.compare(f"{name}: the first step, {what}", found[ours] / found[peer], target=f"{most} or less")


def lines_of(setting: Setting, kept: str, *arguments: str) -> list[str]:
    """What compiled_gpu_times.py prints; whoever compiles finds in the folder `kept` what it kept there before."""
    caches = {"DICP_CACHE": f"{kept}/dicp", "TORCHINDUCTOR_CACHE_DIR": f"{kept}/inductor"}
    start = time.monotonic()
    lines = setting.python(str(HERE / "compiled_gpu_times.py"), *arguments, **caches).splitlines()
    print(f"{' '.join(arguments)}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    return lines

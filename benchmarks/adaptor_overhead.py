"""What the adaptor adds to a call: time, instructions and allocations, beside the direct call and wrapper objects."""

import json
import re
import shutil
import subprocess
from pathlib import Path

from figures import Figure, Report
from setting import Setting

ABOUT = (
    "calls through the adaptor beside the direct call and an adaptor of wrapper objects (peers); thread CPU time, the "
    "million doubles in wall time"
)
SOURCES = ("call.cpp", "describe.cpp", "layout.cpp", "range.cpp", "trace.cpp")
TARGETS = {3: "15 or less", 8: "40 or less"}
CALLS = 2_000  # of which callgrind counts the instructions


def measure(setting: Setting) -> Report:
    """Runs programs/adaptor_overhead.cpp on tensors of the runtime without a framework."""
    report = Report("adaptor_overhead", ABOUT)
    sources = [f"runtime_cpp/adaptor/{name}" for name in SOURCES]
    program = setting.program("adaptor_overhead", *sources, with_torch=False)
    command = [str(program), str(setting.libraries / "libdiopi_impl.so")]
    lines = [json.loads(line) for line in setting.output(command).splitlines()]
    found = {line["name"]: report.add(line["name"], "ns", line["ns"]) for line in lines if "ns" in line}
    allocations = {line["name"]: line["allocations"] / 1000 for line in lines if "allocations" in line}
    for count, target in TARGETS.items():
        _compare_idle(report, found, allocations, count, target)
    alone, together = found["1M doubles, the cast and the call alone"], found["1M doubles, adaptor"]
    report.compare(
        "1M doubles, adaptor over the cast and the call alone", together.median / alone.median, "x", "1.15 or less"
    )
    if shutil.which("valgrind") is not None:
        for name in allocations:
            report.compare(f"{name}: instructions of a call", _instructions(setting, program, name), "")
    return report


def _compare_idle(
    report: Report, found: dict[str, Figure], allocations: dict[str, float], count: int, target: str
) -> None:
    direct = found[f"{count} tensors, direct"]
    for what in ("adaptor, dtypes", "adaptor, dtypes and layout", "adaptor, dtypes and contiguous", "wrapper objects"):
        name = f"{count} tensors, {what}"
        ours = what != "wrapper objects"
        report.compare(
            f"{name}: above the direct call", found[name].median - direct.median, "ns", target if ours else ""
        )
        report.compare(f"{name}: allocations of a call", allocations[name], "", "0" if ours else "")
    adaptor = found[f"{count} tensors, adaptor, dtypes and layout"].median - direct.median
    wrapper = found[f"{count} tensors, wrapper objects"].median - direct.median
    report.compare(f"{count} tensors: wrapper objects over the adaptor", wrapper / adaptor)


def _instructions(setting: Setting, program: Path, name: str) -> float:
    """What callgrind counts for one call: the difference of two numbers of calls leaves out all that is around them."""
    counts = []
    for calls in (CALLS, 2 * CALLS):
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(program)]
        command += [str(setting.libraries / "libdiopi_impl.so"), name, str(calls)]
        done = subprocess.run(command, capture_output=True, text=True, env=setting.environment, check=True)
        counted = re.search(r"Collected : (\d+)", done.stderr)
        assert counted is not None, done.stderr
        counts.append(int(counted[1]))
    return (counts[1] - counts[0]) / CALLS

"""What a PyTorch operator on dipu costs above the C call that it makes, beside the same operator on the CPU."""

import json
from statistics import geometric_mean

from figures import Figure, Report
from setting import Setting

ABOUT = "operators on one-element float32 tensors: on dipu, the bare C call, and torch's CPU (peer); thread CPU time"


def _thirty(report: Report, found: dict[str, Figure]) -> None:
    """Geometric means over the thirty operators."""
    names = [name.partition(" on dipu")[0] for name in found if name.endswith(" on dipu, of thirty")]
    above, ratios = [], []
    for name in names:
        device, bare, cpu = (
            found[f"{name}{what}, of thirty"].median for what in (" on dipu", ", bare C call", " on the CPU")
        )
        above.append(max(1.0, device - bare))
        ratios.append(device / cpu)
    report.compare(f"{len(names)} operators: wrapper above the C call", geometric_mean(above), "ns", "200 ns or less")
    report.compare(f"{len(names)} operators: dipu over CPU", geometric_mean(ratios), "x", "0.6 or less")


def measure(setting: Setting) -> Report:
    """Runs programs/wrapper_overhead.cpp, whose rounds take every variant in turn."""
    report = Report("wrapper_overhead", ABOUT)
    lines = setting.output([str(setting.program("wrapper_overhead", with_torch=True))]).splitlines()
    found: dict[str, Figure] = {}
    for line in map(json.loads, lines):
        found[line["name"]] = report.add(line["name"], "ns", line["ns"])
    for mode in (", inference mode", ""):
        for op, call in (("add", "diopiAdd"), ("mul", "diopiMul")):
            device, bare = found[f"at::{op} on dipu{mode}"].median, found[f"{call}, bare C call{mode}"].median
            cpu = found[f"at::{op} on the CPU{mode}"].median
            report.compare(f"at::{op}{mode}: wrapper above the C call", device - bare, "ns", "150 ns or less")
            report.compare(f"at::{op}{mode}: dipu over CPU", device / cpu, "x", "0.4 or less")
        for op in ("at::add_out", "add_"):
            ratio = found[f"{op} on dipu{mode}"].median / found[f"{op} on the CPU{mode}"].median
            report.compare(f"{op}{mode}: dipu over CPU", ratio)
    _thirty(report, found)
    empty = found["empty loop"].median
    for feature in (
        "control byte: dump, compare, synchronize, force_fallback",
        "device guard",
        "status: fallback and its counter",
    ):
        report.compare(feature, max(0.0, found[feature].median - empty), "ns", "2 ns or less")
    return report

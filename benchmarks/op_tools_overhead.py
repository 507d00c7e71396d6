"""What the op tools add to an operator, beside torch's own modes in the same run."""

import json
from statistics import geometric_mean

from figures import Figure, Report
from setting import HERE, Setting

ABOUT = "small eager operators under the op tools and, as peers, under torch's modes; thread CPU time"
TARGETS = {"OpObserve": "5 us or less", "OpTimeMeasure": "6 us or less"}


def measure(setting: Setting) -> Report:
    """Runs op_tools_calls.py, whose rounds take every way in turn."""
    report = Report("op_tools_overhead", ABOUT)
    found: dict[tuple[str, str, str], Figure] = {}
    for row in map(json.loads, setting.python(str(HERE / "op_tools_calls.py")).splitlines()):
        way, device, operator = row["way"], row["device"], row["operator"]
        found[way, device, operator] = report.add(f"{operator} on {device}, {way}", "us", row["us"])
    operators = dict.fromkeys(operator for _, _, operator in found)
    for way in dict.fromkeys(way for way, _, _ in found if way != "bare"):
        for device in ("cpu", "dipu"):
            added = [
                found[way, device, operator].median - found["bare", device, operator].median for operator in operators
            ]
            target = TARGETS.get(way, "")
            report.compare(f"{way}: added to add on {device}", added[0], "us", target)
            mean = geometric_mean([max(value, 0.01) for value in added])
            report.compare(f"{way}: added to {len(operators)} operators on {device}", mean, "us", target)
    return report

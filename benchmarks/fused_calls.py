"""AdamW over many parameters and attention with dropout on a GPU, beside torch's own kernels."""

import json

from figures import Report
from setting import HERE, Setting

ABOUT = "an optimizer's step over many parameters and attention on a GPU; the peer is torch's own"
TARGETS = {"AdamW": "1.0 or less", "attention": "1.1 or less"}  # by the first word of a call


def measure(setting: Setting) -> Report:
    """Runs fused_calls_times.py once for each device."""
    report = Report("fused_calls_cuda", ABOUT)
    medians: dict[str, dict[str, float]] = {}
    for device in ("cuda", "dipu"):
        for found in map(json.loads, setting.python(str(HERE / "fused_calls_times.py"), device).splitlines()):
            row = report.add(f"{found['name']}, {device}", "us", found["us"])
            medians.setdefault(found["name"], {})[device] = row.median
    for name, found in medians.items():
        report.compare(f"{name}: dipu over cuda", found["dipu"] / found["cuda"], target=TARGETS[name.split()[0]])
    return report

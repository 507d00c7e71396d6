"""How much of a GPU's copy bandwidth memory-bound operators reach on dipu; the peer is torch's own CUDA kernel."""

import json

from figures import Report
from setting import HERE, Setting

ABOUT = "memory-bound operators on 64M elements of dipu; the peer is torch's CUDA kernel, the measure torch's own copy"


def measure(setting: Setting) -> Report:
    """Runs bandwidth_times.py, which takes the devices in turn."""
    report = Report("bandwidth", ABOUT)
    for case in map(json.loads, setting.python(str(HERE / "bandwidth_times.py")).splitlines()):
        for device in ("dipu", "cuda"):
            report.add(f"{case['name']}, {device}", "GB/s", case[device])
        dipu, cuda = (sorted(case[device])[len(case[device]) // 2] for device in ("dipu", "cuda"))
        report.compare(f"{case['name']}: of the bandwidth of a copy", dipu / case["copy"], target="0.85 or more")
        report.compare(f"{case['name']}: speed of cuda = 1", dipu / cuda)
    return report

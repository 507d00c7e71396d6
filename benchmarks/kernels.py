"""What the portable kernels take on dipu, beside torch's own kernels on one thread of the CPU."""

import json

from figures import Report
from setting import HERE, Setting

ABOUT = "float32 operators on dipu, and on one thread of torch's CPU (peer); process CPU time"


def measure(setting: Setting) -> Report:
    """Runs kernel_times.py, which takes the devices in turn."""
    report = Report("kernels", ABOUT)
    for case in map(json.loads, setting.python(str(HERE / "kernel_times.py")).splitlines()):
        device = report.add(f"{case['name']}, dipu", "ms", case["dipu"])
        cpu = report.add(f"{case['name']}, CPU", "ms", case["cpu"])
        report.compare(f"{case['name']}: dipu over CPU", device.median / cpu.median)
    return report

"""What a training step of the demo's three models takes on dipu, beside one thread of the CPU."""

import json

from figures import Report
from setting import HERE, Setting

ABOUT = "one training step of the demo's models on dipu, and on one thread of the CPU (peer); process CPU time"


def measure(setting: Setting) -> Report:
    """Runs training_times.py."""
    report = Report("training", ABOUT)
    for task in map(json.loads, setting.python(str(HERE / "training_times.py")).splitlines()):
        device = report.add(f"{task['name']}, dipu", "ms", task["dipu"])
        cpu = report.add(f"{task['name']}, CPU", "ms", task["cpu"])
        report.compare(f"{task['name']}: dipu over CPU", device.median / cpu.median, target="0.95 or less")
    return report

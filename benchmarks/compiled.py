"""What a training step takes when it is compiled for dipu, beside dipu eager, torch's CPU eager and inductor's CPU code."""

import json

from figures import Report
from setting import HERE, Setting

ABOUT = "one training step compiled for dipu, beside eager and inductor (peers), on one and on two threads"


def measure(setting: Setting) -> Report:
    """Runs compiled_times.py once for each number of threads."""
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
                target = f"{1.2 if mode == 'CPU inductor' else 1.0} or less"
                report.compare(f"{title}: compiled over {mode}", compiled.median / row.median, target=target)
    return report

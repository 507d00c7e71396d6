"""What each operator takes on dipu, beside torch's own kernel for it, on one thread of the CPU or on the same GPU."""

import json
from math import exp, log
from statistics import median

from figures import Report
from setting import HERE, ROOT, Setting

ABOUT = "operators at 64K elements or more on dipu; the peer is torch's own kernel, on one CPU thread or on the GPU"
WORST = 20


def measure(setting: Setting) -> Report:
    """Runs operator_times.py, which takes the devices in turn."""
    report = Report("operators" if setting.vendor == "droplet" else f"operators_{setting.vendor}", ABOUT)
    peer = "cuda" if setting.vendor == "cuda" else "cpu"
    plan = ROOT / "generated" / setting.vendor / "conformance" / "plan.json"
    size = ["--elements", str(1 << 20), "--rounds", "3"] if peer == "cuda" else []
    lines = setting.python(str(HERE / "operator_times.py"), str(plan), "--peer", peer, *size).splitlines()
    told = [json.loads(line) for line in lines]
    found = [each for each in told if not each["fell"]]
    speeds = {each["id"]: median(each["rounds"][peer]) / median(each["rounds"]["dipu"]) for each in found}
    for kind, ids in (
        ("operators and calls of models", list(speeds)),
        ("calls of models", [each["id"] for each in found if each["models"]]),
        ("rows made long", [each["id"] for each in found if not each["models"]]),
    ):
        report.compare(
            f"speed of {peer} = 1: geometric mean of {len(ids)} {kind}", _mean(speeds, ids), target="0.9 or more"
        )
    for name in sorted(speeds, key=speeds.__getitem__)[:WORST]:
        rounds = next(each["rounds"] for each in found if each["id"] == name)
        for device, seconds in rounds.items():
            report.add(f"{name}, {device}", "us", [1e6 * each for each in seconds])
        report.compare(f"{name}: speed of {peer} = 1", speeds[name])
    fell = sorted({each["function"] for each in told if each["fell"]})
    report.compare(f"functions whose operators fall back, left out: {', '.join(fell) or 'none'}", len(fell), "")
    return report


def _mean(speeds: dict[str, float], ids: list[str]) -> float:
    return exp(sum(log(speeds[name]) for name in ids) / max(1, len(ids)))

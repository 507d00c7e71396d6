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
    whole, least = ("1.25", "0.5") if peer == "cuda" else ("1.2", "0.4")
    for kind, target, ids in (
        ("operators and calls of models", whole, list(speeds)),
        ("calls of models", "1.1", [each["id"] for each in found if each["models"]]),
        ("rows made long", whole, [each["id"] for each in found if not each["models"]]),
    ):
        name = f"speed of {peer} = 1: geometric mean of {len(ids)} {kind}"
        report.compare(name, _mean(speeds, ids), target=f"{target} or more")
    for name in sorted(speeds, key=speeds.__getitem__)[:WORST]:
        rounds = next(each["rounds"] for each in found if each["id"] == name)
        for device, seconds in rounds.items():
            report.add(f"{name}, {device}", "us", [1e6 * each for each in seconds])
        report.compare(f"{name}: speed of {peer} = 1", speeds[name], target=f"{least} or more")
    fell = sorted({each["function"] for each in told if each["fell"]})
    report.compare(f"functions whose operators fall back, left out: {', '.join(fell) or 'none'}", len(fell), "")
    return report


def _mean(speeds: dict[str, float], ids: list[str]) -> float:
    return exp(sum(log(speeds[name]) for name in ids) / max(1, len(ids)))

"""What collectives and steps of distributed training take on dipu, beside torch's own on the same GPUs."""

import json
from itertools import product

from figures import Report
from setting import HERE, Setting

ABOUT = "collectives and training steps on two GPUs, dipu + dicl beside torch's cuda + nccl (peer), the same script for both"
SCRIPTS = ("collectives_times.py", "overlap_times.py")
ROUNDS = 2  # each device in turn, as what runs beside may change


def measure(setting: Setting) -> Report:
    """Runs the scripts by torchrun, for each device in turn."""
    report = Report("collectives", ABOUT)
    found: dict[tuple[str, str], list[float]] = {}
    losses: dict[tuple[str, str], float] = {}
    for _ in range(ROUNDS):
        for device, script in product(("cuda", "dipu"), SCRIPTS):
            command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(HERE / script)]
            lines = [line for line in setting.python(*command, device).splitlines() if line.startswith("{")]
            for line in map(json.loads, lines):  # profilers may print lines of their own
                if "values" in line:
                    found.setdefault((line["name"], device), []).extend(line["values"])
                if "loss" in line:
                    losses[line["name"], device] = line["loss"]
    for name, device in found:
        if device == "dipu":
            what, _, unit = name.rpartition(", ")
            ours = report.add(f"{what}, dipu", unit, found[name, "dipu"])
            theirs = report.add(f"{what}, cuda", unit, found[name, "cuda"])
            if theirs.median:
                report.compare(f"{what}: dipu over cuda", ours.median / theirs.median)
    for name, device in losses:
        if device == "dipu":
            apart = abs(losses[name, "dipu"] - losses[name, "cuda"]) / abs(losses[name, "cuda"])
            report.compare(f"{name}: the last losses apart", apart)
    return report

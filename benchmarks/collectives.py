"""What collectives and steps of distributed training take on dipu, beside torch's own on the same GPUs."""

import json

from figures import Report
from setting import HERE, Setting

ABOUT = "collectives and training steps on two GPUs, dipu + dicl beside torch's cuda + nccl (peer), the same script for both"
ROUNDS = 2  # each device in turn, as what runs beside may change


def measure(setting: Setting) -> Report:
    """Runs collectives_times.py by torchrun, for each device in turn."""
    report = Report("collectives", ABOUT)
    found: dict[tuple[str, str], list[float]] = {}
    losses: dict[tuple[str, str], float] = {}
    for _ in range(ROUNDS):
        for device in ("cuda", "dipu"):
            command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
            for line in map(
                json.loads, setting.python(*command, str(HERE / "collectives_times.py"), device).splitlines()
            ):
                if "values" in line:
                    found.setdefault((line["name"], device), []).extend(line["values"])
                if "loss" in line:
                    losses[line["name"], device] = line["loss"]
    for name, device in found:
        if device == "dipu":
            what, _, unit = name.rpartition(", ")
            ours = report.add(f"{what}, dipu", unit, found[name, "dipu"])
            theirs = report.add(f"{what}, cuda", unit, found[name, "cuda"])
            report.compare(f"{what}: dipu over cuda", ours.median / theirs.median)
    for name, device in losses:
        if device == "dipu":
            apart = abs(losses[name, "dipu"] - losses[name, "cuda"]) / abs(losses[name, "cuda"])
            report.compare(f"{name}: the last losses apart", apart)
    return report

"""What each generated unit takes to compile, in time and memory, beside a unit that only includes torch's headers."""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from figures import Report
from setting import Setting

ABOUT = "CPU seconds and peak memory of compiling each generated unit; the peer has the same includes and nothing else"


@dataclass(frozen=True)
class Cost:
    """What one compiler process took."""

    seconds: float
    megabytes: float


def measure(setting: Setting) -> Report:
    """Compiles each generated unit once, with the build's own command, into a folder of its own."""
    report = Report("compile_units", ABOUT)
    commands = _commands(setting)
    costs: dict[str, Cost] = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for source, command in commands.items():
            costs[_name(source)] = _compile(command, source, source, place / "unit.o")
        largest = max(
            (source for source in commands if "/aten/" in source), key=lambda source: costs[_name(source)].seconds
        )
        empty = place / "empty.cpp"
        empty.write_text("".join(re.findall(r"^#include.*\n", Path(largest).read_text(encoding="utf-8"), re.MULTILINE)))
        costs["the includes of the largest (peer)"] = _compile(commands[largest], largest, str(empty), place / "unit.o")
    for name, cost in costs.items():
        report.add(f"{name}, time", "s", [cost.seconds])
        report.add(f"{name}, memory", "MB", [cost.megabytes])
    peer, most = costs["the includes of the largest (peer)"], costs[_name(largest)]
    slowest = max(costs, key=lambda name: costs[name].seconds)
    report.compare(f"slowest unit, {slowest}", costs[slowest].seconds, "s", "25 s or less")
    report.compare("most memory", max(cost.megabytes for cost in costs.values()), "MB", "1200 MB or less")
    report.compare(f"{_name(largest)} over its includes, time", most.seconds / peer.seconds)
    return report


def _commands(setting: Setting) -> dict[str, list[str]]:
    """The build's command for each generated unit, by source; asked of Ninja."""
    ninja = Path(sys.executable).parent / "ninja"
    program = str(ninja) if ninja.exists() else "ninja"
    text = subprocess.run(
        [program, "-C", str(setting.build), "-t", "compdb"], capture_output=True, text=True, check=True
    )
    entries = json.loads(text.stdout)
    folder = f"/generated/{setting.vendor}/"
    return {
        each["file"]: shlex.split(each["command"])
        for each in entries
        if folder in each["file"] and each["file"].endswith(".cpp") and " -c " in each["command"]
    }


def _name(source: str) -> str:
    return "/".join(Path(source).parts[-2:])


def _compile(command: list[str], source: str, unit: str, out: Path) -> Cost:
    """Runs the command on `unit` in place of `source`, into `out`."""
    words = [unit if word == source else word for word in command]
    words[words.index("-o") + 1] = str(out)
    if "-MF" in words:
        words[words.index("-MF") + 1] = str(out.with_suffix(".d"))
    words += ["-I", str(Path(source).parent)]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    text = process.stderr.read() if process.stderr else ""
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise RuntimeError(f"{unit} does not compile: {text}")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)

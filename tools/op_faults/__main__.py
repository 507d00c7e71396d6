"""The command: `python -m tools.op_faults`."""

import math
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import click

from tools.op_faults.faults import FAULTS

_TRAIN = Path(__file__).with_name("train.py")
_MOST_OF_DETERMINISTIC = 3  # runs beside ceil(log2(operators))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What `op-tools bisect` made of one planted fault."""

    operator: str
    kind: str
    named: str  # the operator that it named; empty where none
    runs: int
    searched: int  # operators
    repeated: bool  # whether the program that it wrote shows the fault again
    seconds: float
    text: str  # what it printed

    @property
    def good(self) -> bool:
        within = (
            self.kind == "intermittent" or self.runs <= math.ceil(math.log2(self.searched)) + _MOST_OF_DETERMINISTIC
        )
        return self.named == self.operator and self.repeated and within

    @property
    def line(self) -> str:
        most = math.ceil(math.log2(self.searched)) + _MOST_OF_DETERMINISTIC if self.searched else 0
        runs = f"{self.runs} runs" + ("" if self.kind == "intermittent" else f" (of {most})")
        again = "repeated" if self.repeated else "NOT REPEATED"
        named = "named" if self.named == self.operator else f"NOT NAMED, but {self.named or 'nothing'}"
        return f"{self.operator:44} {self.kind:16} {named:8} {runs:16} {again:12} {self.seconds:5.0f} s"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", multiple=True, metavar="GLOB", help="Only these operators, e.g. 'aten.silu*'.")
@click.option("--kind", multiple=True, metavar="GLOB", help="Only these kinds, e.g. 'stale*'.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Faults at a time.")
def main(only: tuple[str, ...], kind: tuple[str, ...], jobs: int) -> None:
    """Plant faults in operators of dipu, one at a time, and let `op-tools bisect` look for them.

    It must name the operator, in ceil(log2(operators)) + 3 runs where the fault is there in every call, and write a
    program that shows the fault again. Exit codes: 0 all were found so, 1 some were not, 2 wrong usage.
    """
    chosen = [fault for fault in FAULTS if _wanted(fault[0], only) and _wanted(fault[1], kind)]
    if not chosen:
        raise click.UsageError("no fault is of such an operator and kind; tools/op_faults/faults.py lists them")
    with ThreadPoolExecutor(jobs) as pool:
        outcomes = []
        for outcome in pool.map(lambda fault: bisected(*fault), chosen):
            outcomes.append(outcome)
            click.echo(outcome.line if outcome.good else f"{outcome.line}\n{outcome.text}")
    good = sum(outcome.good for outcome in outcomes)
    click.echo(f"{good} of {len(outcomes)} faults were named, within the runs, with a program that repeats them")
    sys.exit(0 if good == len(outcomes) else 1)


def bisected(operator: str, kind: str) -> Outcome:
    """Plants one fault and bisects."""
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        options = ["--bad", "dipu", "--rtol", "1e-5", "--folder", "found"]
        done = _python(folder, "-m", "op_tools", "bisect", str(_TRAIN), *options, "--", operator, kind)
        program = Path(folder) / "found" / "reproduce.py"
        repeated = program.exists() and _python(folder, str(_TRAIN), operator, kind, str(program)).returncode == 1
    named = re.search(r"^culprit: (\S+)$", done.stdout, re.MULTILINE)
    counts = re.search(r"^(\d+) runs, (\d+) operators", done.stdout, re.MULTILINE)
    return Outcome(
        operator=operator,
        kind=kind,
        named=named.group(1) if named else "",
        runs=int(counts.group(1)) if counts else 0,
        searched=int(counts.group(2)) if counts else 0,
        repeated=repeated,
        seconds=time.perf_counter() - begin,
        text=done.stdout + done.stderr,
    )


def _python(folder: str, *words: str) -> subprocess.CompletedProcess[str]:
    # Programs and their children look for packages where this one did.
    paths = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    environment = {**os.environ, **paths, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def _wanted(name: str, patterns: tuple[str, ...]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


if __name__ == "__main__":
    main()

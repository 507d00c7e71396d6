"""Shows the whole chain on one vendor: the build, three models trained on `dipu`, a sample of its conformance cases."""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from comparison import Comparison
    from models import Task

ROOT = Path(__file__).resolve().parent.parent
STEPS = 50
SAMPLE = 4  # conformance cases of each function
INTERRUPTED = 130


def main() -> int:
    """Runs the demo; the exit code: 0 all good, 1 something is wrong, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vendor", default="droplet", help="a folder of vendors/ (droplet)")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"training steps of each model ({STEPS})")
    parser.add_argument("--sample", type=int, default=SAMPLE, help=f"conformance cases of each function ({SAMPLE})")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="compilers, and conformance processes")
    options = parser.parse_args()
    try:
        return 0 if _stages(options, Console(highlight=False)) else 1
    except KeyboardInterrupt:
        print("interrupted; 'make demo' goes on from what is built", file=sys.stderr)
        return INTERRUPTED


def _stages(options: argparse.Namespace, console: Console) -> bool:
    """The stages after the environment, which make sets up; whether all is good."""
    begin = time.monotonic()

    def head(title: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - begin), 60)
        console.print(f"[bold]{title}[/bold] (at {minutes}:{seconds:02})")

    head(f"2/5 build {options.vendor}")
    if not _built(options.vendor, options.jobs):
        return False
    head("3/5 train the first model")
    tasks = _tasks(options.vendor)
    if not tasks:
        return False
    trained = _trained(tasks[:1], options.steps, console)
    head("4/5 train the others")
    trained += _trained(tasks[1:], options.steps, console)
    if not _told(trained, options.steps, console):
        return False
    head("5/5 a sample of the conformance cases")
    good = _conformance(options.vendor, options.sample, options.jobs)
    head("done" if good else "a conformance case is wrong")
    console.print(f"all conformance cases: make conformance IMPL={options.vendor}")
    return good


def _built(vendor: str, jobs: int) -> bool:
    folder = ROOT / "build" / vendor
    words = ["--vendor", vendor, "--build", str(folder), "--jobs", str(jobs)]
    return _finished([sys.executable, str(ROOT / "tools" / "build.py"), *words])


def _tasks(vendor: str) -> tuple["Task", ...]:
    """The models; none where torch does not find the device. torch is imported once the backend is built."""
    os.environ.setdefault("DIPU_LIBRARY_DIR", str(ROOT / "build" / vendor / "lib"))
    import torch

    from models import TASKS

    if hasattr(torch, "dipu") and torch.dipu.is_available():
        torch.set_num_threads(1)  # the models are small: on a busy machine threads of the CPU wait for each other
        return TASKS
    print("torch has no device 'dipu', though it is built", file=sys.stderr)
    return ()


def _trained(tasks: Sequence["Task"], steps: int, console: Console) -> list["Comparison"]:
    """Trains the models, each on both devices, and says of each what came of it."""
    from comparison import compared

    found = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    left = (TimeRemainingColumn(), TextColumn("left"))
    with Progress(*columns, *left, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(tasks[0].name, total=2 * steps * len(tasks))
        for task in tasks:
            progress.update(bar, description=task.name)
            each = compared(task, steps, lambda: progress.advance(bar))
            loss = f"{each.dipu.losses[0]:.3f} to {each.dipu.losses[-1]:.6f} on dipu"
            console.print(f"{task.name}: {loss}, {each.cpu.losses[-1]:.6f} on the CPU")
            found.append(each)
    return found


def _told(trained: Sequence["Comparison"], steps: int, console: Console) -> bool:
    from comparison import EARLY, LATE, table

    console.print(table(trained, steps))
    if all(each.good for each in trained):
        return True
    console.print(f"[red]a loss differs ({EARLY:g} after 2 steps, {LATE:g} at the end), or an operator fell back[/red]")
    return False


def _conformance(vendor: str, sample: int, jobs: int) -> bool:
    """Whether the vendor's library passes `sample` cases of each function."""
    report = f"conformance_results/{vendor}-sample.json"
    command = [sys.executable, "-m", "diopi_conformance", "run", "--vendor", vendor, "--jobs", str(jobs)]
    command += ["--sample", str(sample), "--out", report, "--format", "summary"]
    if _finished(command):
        return True
    print(f"what is wrong: {Path(sys.executable).parent}/diopi-conformance report {report}", file=sys.stderr)
    return False


def _finished(command: list[str]) -> bool:
    """Whether a program of the project is successful. Ctrl-C reaches it too: it ends in its own way first."""
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    process = subprocess.Popen(command, cwd=ROOT, env=environment)
    interrupted = False
    while True:
        try:
            code = process.wait()
            break
        except KeyboardInterrupt:
            interrupted = True
    if interrupted or code == INTERRUPTED:
        raise KeyboardInterrupt
    return code == 0


if __name__ == "__main__":
    sys.exit(main())
